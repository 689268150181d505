// A tuning file when the power goes while one is replaced: it is the old one or the new one, and
// once it was written, the new one.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "crash/replaced_file.h"
#include "sample_tuning.h"

#include <cstdio>

using namespace dtrain;
using namespace dtrain::collectives;

namespace {

std::string read(const std::string &folder) {
    Tuning tuning;
    const Status s = read_tuning((folder + "/tuning").c_str(), tuning);
    return s == DTRAIN_OK ? to_text(tuning) : error_text();
}

void a_tuning_file_is_replaced(void **) {
    crash::ReplacedFile file(read);
    const std::string path = file.folder() + "/tuning";
    assert_int_equal(write_tuning(path.c_str(), sample_tuning(4)), DTRAIN_OK);
    file.replace([&] { REQUIRE(write_tuning(path.c_str(), sample_tuning(16)) == DTRAIN_OK); });
    crash::Counts counts;
    assert_string_equal(file.crash_at_each(file.log(), counts).c_str(), "");
    print_message("%llu states\n", static_cast<unsigned long long>(counts.states));
    assert_true(counts.states > 5);
    assert_string_not_equal(file.crash_at_each(without_syncs(file.log()), counts).c_str(), "");
}

} // namespace

int main() {
    if (!crash::Traced::works()) return std::puts(crash::Traced::skipped), 77;
    const CMUnitTest tests[] = {cmocka_unit_test(a_tuning_file_is_replaced)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
