// No driver, and a driver without GPUs: the plugin loads, and says what is missing.
// SPDX-License-Identifier: Apache-2.0
#include "fake_driver.h"

namespace {
using namespace dtrain::test;

void expect_none(const char *text) {
    FakeHost host;
    char names[100];
    if (ops().list(host.table(), names, sizeof names) != DTRAIN_ERR_UNSUPPORTED ||
        host.text().find(text) == std::string::npos)
        fail_msg("not \"%s\": %s", text, host.text().c_str());
    dtrain_dv_range_t range{};
    range.struct_size = sizeof range;
    assert_int_equal(ops().classify(host.table(), &host, 1, &range), DTRAIN_ERR_UNSUPPORTED);
}

void missing_driver_is_named(void **) {
    if (dlopen("libcuda.so.1", RTLD_NOW) != nullptr) skip(); // this machine has one
    expect_none("NVIDIA's driver");
}
// Later in the same process a driver has come.
void driver_without_gpus_is_named(void **) {
    setenv("FAKECUDA_DEVICES", "0", 1);
    load_driver();
    expect_none("CUDA_ERROR_NO_DEVICE");
}
} // namespace

int main() {
    load_cuda();
    const CMUnitTest tests[] = {cmocka_unit_test(missing_driver_is_named),
                                cmocka_unit_test(driver_without_gpus_is_named)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
