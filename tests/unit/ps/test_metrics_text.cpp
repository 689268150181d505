// Counters, histograms, and how they are told.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/metrics_text.h"

#include "check.h"
#include "metrics_reader.h"

#include <iterator>
#include <regex>
#include <sstream>
#include <vector>

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
    const std::string text = metrics_text(7, {{report}, {}});
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

constexpr const char *counters[] = {"requests", "repeats",        "refused",
                                    "dropped",  "stale",          "not_finite",
                                    "elements", "received_bytes", "sent_bytes"};
constexpr uint64_t Counters::*members[] = {
    &Counters::requests, &Counters::repeats, &Counters::refused,
    &Counters::dropped,  &Counters::stale,   &Counters::not_finite,
    &Counters::elements, &Counters::sent,    &Counters::received};

ServerReport full_report() {
    ServerReport report;
    uint64_t number = 100; // no two the same
    for (const char *name : {"a", "b"}) {
        TableReport &table = report.tables.emplace_back();
        table.name = name;
        table.bytes = ++number;
        table.device_bytes = ++number;
        table.updates = ++number;
        for (int worker = 0; worker < 2; worker++) {
            Counters &counts = table.workers.emplace_back();
            for (uint64_t Counters::*member : members) counts.*member = ++number;
            for (uint64_t staleness : {uint64_t{0}, uint64_t{1}, uint64_t{9}, 128 + ++number % 8})
                counts.staleness.add(staleness);
        }
    }
    for (int worker = 0; worker < 2; worker++) {
        PeerMemory &peer = report.peers.emplace_back(0);
        const Charge most(peer, ++number);
    }
    return report;
}

// "" or what the text does not say of the report.
std::string fault_of(const std::string &text, const ServerReport &report) {
    const MetricsReader reader(text);
    if (!reader.error().empty()) return reader.error();
    std::string wrong;
    auto expect = [&](const std::string &name, const std::string &labels, uint64_t value) {
        const std::string sample = "dtrain_server_" + name + "{server=\"7\"," + labels + "}";
        if (reader.value(sample) != value) wrong = sample + " is not " + std::to_string(value);
    };
    for (const TableReport &table : report.tables) {
        const std::string its = "table=\"" + table.name + "\"";
        expect("table_bytes", its, table.bytes);
        expect("table_device_bytes", its, table.device_bytes);
        expect("updates_total", its, table.updates);
        for (size_t w = 0; w < table.workers.size(); w++) {
            const std::string labels = its + ",worker=\"" + std::to_string(w) + "\"";
            const Counters &counts = table.workers[w];
            for (size_t i = 0; i < std::size(counters); i++)
                expect(std::string(counters[i]) + "_total", labels, counts.*members[i]);
            const std::string name = "push_staleness_updates";
            uint64_t below = 0;
            for (size_t i = 0; i < 9; i++) { // up to 255
                below += counts.staleness.count[i];
                expect(name + "_bucket",
                       labels + ",le=\"" + std::to_string(Histogram::bound(i)) + "\"", below);
            }
            expect(name + "_bucket", labels + ",le=\"+Inf\"", below);
            expect(name + "_count", labels, below);
            expect(name + "_sum", labels, counts.staleness.sum);
        }
    }
    for (size_t w = 0; w < report.peers.size(); w++) {
        const std::string labels = "worker=\"" + std::to_string(w) + "\"";
        expect("peer_held_bytes", labels, report.peers[w].held());
        expect("peer_held_bytes_max", labels, report.peers[w].most_held());
    }
    for (const char *gauge :
         {"table_bytes", "table_device_bytes", "peer_held_bytes", "peer_held_bytes_max"})
        if (reader.type(std::string("dtrain_server_") + gauge) != "gauge") wrong = gauge;
    for (const char *counter : counters)
        if (reader.type(std::string("dtrain_server_") + counter + "_total") != "counter")
            wrong = counter;
    return wrong;
}

void everything_is_told(void **) {
    const ServerReport report = full_report();
    assert_string_equal(fault_of(metrics_text(7, report), report).c_str(), "");
}

void what_is_counted_wrongly_is_found(void **) {
    const ServerReport report = full_report();
    auto finds = [&](auto &&spoil) {
        ServerReport spoiled = full_report();
        spoil(spoiled.tables[1].workers[1]);
        return !fault_of(metrics_text(7, spoiled), report).empty();
    };
    assert_false(finds([](Counters &) {}));
    for (uint64_t Counters::*member : members)
        assert_true(finds([&](Counters &counts) { counts.*member = 0; })); // never counted
    assert_true(finds([](Counters &counts) { counts.staleness.sum += 1; }));
    assert_true(finds([](Counters &counts) { counts.staleness.sum = 0; }));
    assert_true(finds([](Counters &counts) { counts.staleness.count[0] += 1; }));
    assert_true(finds([](Counters &counts) { counts.staleness = {}; }));
}

void a_broken_line_is_found(void **) {
    const ServerReport report = full_report();
    std::istringstream text(metrics_text(7, report));
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    for (size_t i = 0; i < lines.size(); i++) {
        const std::string &line = lines[i];
        std::vector<std::string> broken = {"", line + "\n" + line, line.substr(1), line + "\""};
        if (line[0] == '#') {
            broken.push_back("#" + line.substr(2)); // no space
            broken.push_back(std::regex_replace(line, std::regex("dtrain_server_"), "server_"));
            for (const char *type : {"counter", "gauge", "histogram", "summary", ""})
                broken.push_back(std::regex_replace(line, std::regex("(TYPE .* )\\w+$"),
                                                    std::string("$1") + type));
        } else {
            broken.push_back(std::regex_replace(line, std::regex("\\d+$"), "NaN"));
            broken.push_back(std::regex_replace(line, std::regex("\\d+$"), "1$&"));
        }
        for (const std::string &planted : broken) {
            if (planted == line) continue;
            std::string all;
            for (size_t k = 0; k < lines.size(); k++)
                if (k != i || !planted.empty()) all += (k == i ? planted : lines[k]) + "\n";
            if (fault_of(all, report).empty()) fail_msg("not found: \"%s\"", planted.c_str());
        }
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_histogram_has_every_number),
        cmocka_unit_test(labels_are_quoted),
        cmocka_unit_test(everything_is_told),
        cmocka_unit_test(what_is_counted_wrongly_is_found),
        cmocka_unit_test(a_broken_line_is_found),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
