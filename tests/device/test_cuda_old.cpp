// A driver that lacks functions: the plugin says which, and what to install.
// SPDX-License-Identifier: Apache-2.0
#include "fake_driver.h"

namespace {
using namespace dtrain::test;

void old_driver_is_named(void **) {
    FakeHost host;
    char names[100];
    assert_int_equal(ops().list(host.table(), names, sizeof names), DTRAIN_ERR_UNSUPPORTED);
    assert_non_null(strstr(host.text().c_str(), "libcuda.so.1 has no cu"));
    assert_non_null(strstr(host.text().c_str(), "12.1"));
}
} // namespace

int main() {
    load_driver("fakecuda_old");
    load_cuda();
    const CMUnitTest tests[] = {cmocka_unit_test(old_driver_is_named)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
