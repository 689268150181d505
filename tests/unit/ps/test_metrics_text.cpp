// Counters, histograms, and how they are told.
// SPDX-License-Identifier: Apache-2.0
#include "ps/metrics_text.h"

#include "check.h"

using namespace dtrain::ps;

namespace {

void a_histogram_has_every_number(void **) {
    Histogram histogram;
    for (uint64_t number : {uint64_t{0}, uint64_t{1}, uint64_t{2}, uint64_t{3}, uint64_t{4},
                            uint64_t{7}, uint64_t{8}, uint64_t{1} << 38, UINT64_MAX - 100})
        histogram.add(number);
    const uint64_t expected[] = {1, 1, 2, 2, 1};
    for (size_t i = 0; i < 5; i++) assert_int_equal(histogram.count[i], expected[i]);
    assert_int_equal(histogram.count[39], 2);
    for (size_t i = 0; i < Histogram::buckets - 1; i++) {
        Histogram one;
        one.add(Histogram::bound(i));
        assert_int_equal(one.count[i], 1);
        one.add(Histogram::bound(i) + 1);
        assert_int_equal(one.count[i + 1], 1);
    }
    Histogram twice = histogram;
    twice += histogram;
    assert_int_equal(twice.count[2], 4);
    assert_int_equal(twice.sum, 2 * histogram.sum);
}

void labels_are_quoted(void **) {
    TableReport report;
    report.name = "a\"b\\c\nd\xff";
    report.workers.resize(2);
    report.workers[1].requests = 3;
    report.workers[1].staleness.add(2);
    const std::string text = metrics_text(7, {report});
    auto has = [&](const char *line) {
        if (text.find(std::string("\n") + line + "\n") == std::string::npos)
            fail_msg("%s\nhas no line %s", text.c_str(), line);
    };
    const std::string table = R"({server="7",table="a\"b\\c\nd?",worker="1")";
    has(("dtrain_server_requests_total" + table + "} 3").c_str());
    has(("dtrain_server_push_staleness_updates_bucket" + table + ",le=\"1\"} 0").c_str());
    has(("dtrain_server_push_staleness_updates_bucket" + table + ",le=\"3\"} 1").c_str());
    has(("dtrain_server_push_staleness_updates_bucket" + table + ",le=\"+Inf\"} 1").c_str());
    has(("dtrain_server_push_staleness_updates_sum" + table + "} 2").c_str());
    has("# TYPE dtrain_server_table_bytes gauge");
    assert_true(metrics_text(0, {}).find('{') == std::string::npos);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_histogram_has_every_number),
        cmocka_unit_test(labels_are_quoted),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
