// Options: what each kind of value accepts and refuses, and how a refusal names it.
// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/options.h"
#include "check.h"

#include <cstring>

using namespace dtrain;

namespace {

void table_is_sorted(void **) {
    const OptionSpec *before = nullptr;
    for (const OptionSpec &spec : option_table()) {
        if (before != nullptr) assert_true(std::strcmp(before->key, spec.key) < 0);
        before = &spec;
        int64_t number;
        assert_int_equal(parse_option(spec, spec.fallback, number), DTRAIN_OK);
    }
}

void durations(void **) {
    const OptionSpec spec = {"a.time", "1s", OptionKind::duration, 0, second, nullptr, ""};
    struct {
        const char *text;
        int64_t ns;
    } const good[] = {{"0", 0},         {"0ns", 0},        {"0s", 0},      {"7ns", 7},
                      {"50us", 50'000}, {"20ms", 20 * ms}, {"1s", second}, {"0min", 0}};
    for (auto &[text, ns] : good) {
        int64_t number = -1;
        assert_int_equal(parse_option(spec, text, number), DTRAIN_OK);
        assert_int_equal(number, ns);
    }
    for (const char *bad : {"", "1", "00", "-0", "0 ", "ms", "1h", "2s", "-1ns", "1.5ms", "auto"}) {
        int64_t number;
        if (parse_option(spec, bad, number) == DTRAIN_OK) fail_msg("\"%s\" was accepted", bad);
        assert_non_null(std::strstr(error_text(), "a.time"));
    }
}

void zero_is_a_time_where_zero_is_allowed(void **) {
    Options options;
    assert_int_equal(options.set("wait.spin", "0"), DTRAIN_OK);
    assert_int_equal(options.number("wait.spin"), 0);
    assert_int_equal(options.set("wait.spin", "auto"), DTRAIN_OK);
    assert_int_equal(options.number("wait.spin"), -1);
    assert_int_equal(options.set("ps.retry", "0"), DTRAIN_ERR_INVALID);
    assert_non_null(std::strstr(error_text(), "out of range"));
}

void sizes(void **) {
    const OptionSpec spec = {"a.size", "1", OptionKind::size, 1, 1 << 30, nullptr, ""};
    int64_t number;
    assert_int_equal(parse_option(spec, "256K", number), DTRAIN_OK);
    assert_int_equal(number, 256 << 10);
    assert_int_equal(parse_option(spec, "1G", number), DTRAIN_OK);
    for (const char *bad : {"0", "2G", "9000000000000000000G", "1k", "K", "1 M"})
        assert_true(parse_option(spec, bad, number) != DTRAIN_OK);
}

void unknown_key_names_the_nearest(void **) {
    Options options;
    assert_int_equal(options.set("wait.spim", "0"), DTRAIN_ERR_NOT_FOUND);
    assert_non_null(std::strstr(error_text(), "\"wait.spin\""));
    assert_int_equal(options.set("plugin.mine.key", "anything"), DTRAIN_OK);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(table_is_sorted),
        cmocka_unit_test(durations),
        cmocka_unit_test(zero_is_a_time_where_zero_is_allowed),
        cmocka_unit_test(sizes),
        cmocka_unit_test(unknown_key_names_the_nearest),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
