// A misspelled variable is told, and whose is not ours is left alone.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "cluster/environment/stray_variables.h"

using namespace dtrain;

namespace {

bool has(const std::string &text, const char *part) {
    if (text.find(part) != std::string::npos) return true;
    print_error("\"%s\" does not say \"%s\"\n", text.c_str(), part);
    return false;
}

void misspelled_names_are_told(void **) {
    const char *environment[] = {"DTRAIN_OP_TIMEOT=5s", "DTRAIN_RNAK=1", "DTRAIN_RENDEVOUS=x",
                                 nullptr};
    const auto lines = cluster::stray_variables(environment);
    assert_int_equal(lines.size(), 3);
    assert_true(has(lines[0], "DTRAIN_OP_TIMEOT"));
    assert_true(has(lines[0], "nearest one is DTRAIN_OP_TIMEOUT"));
    assert_true(has(lines[1], "nearest one is DTRAIN_RANK"));
    assert_true(has(lines[2], "nearest one is DTRAIN_RENDEZVOUS"));
}

void what_somebody_reads_is_fine(void **) {
    const char *environment[] = {"PATH=/bin",
                                 "DTRAIN=1",
                                 "MY_DTRAIN_THING=1",
                                 "DTRAIN_OP_TIMEOUT=5s",
                                 "DTRAIN_PLUGIN_PATH=/x",
                                 "DTRAIN_TEST_SEED=3",
                                 "DTRAIN_LOCAL_RANK=0",
                                 "DTRAIN_LISTEN_FD=5",
                                 nullptr};
    assert_int_equal(cluster::stray_variables(environment).size(), 0);
    assert_int_equal(cluster::stray_variables(nullptr).size(), 0);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(misspelled_names_are_told),
        cmocka_unit_test(what_somebody_reads_is_fine),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
