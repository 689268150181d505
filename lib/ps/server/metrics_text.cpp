// SPDX-License-Identifier: Apache-2.0
#include "ps/server/metrics_text.h"

namespace dtrain::ps {
namespace {

// Quotes, backslashes and ends of lines as the format wants them; what is not ASCII as ?, since a
// table's name may be any bytes.
std::string label(const std::string &name) {
    std::string text;
    for (char c : name) {
        if (c == '\n')
            text += "\\n";
        else if (c == '"' || c == '\\')
            text += std::string("\\") + c;
        else
            text += c >= ' ' && c <= '~' ? c : '?';
    }
    return text;
}

struct Metric {
    const char *name, *help;
    uint64_t Counters::*counter;
};
constexpr Metric metrics[] = {
    {"requests_total", "Requests, without those that were sent again", &Counters::requests},
    {"repeats_total", "Requests that were sent again", &Counters::repeats},
    {"refused_total", "Requests that ended in an error", &Counters::refused},
    {"dropped_total", "Requests that came too early, and were asked for again", &Counters::dropped},
    {"stale_total", "Pushes and clocks of steps that were over, dropped", &Counters::stale},
    {"not_finite_total", "Pushes that had a NaN or an infinity, dropped", &Counters::not_finite},
    {"elements_total", "Elements or rows of the requests", &Counters::elements},
    {"received_bytes_total", "Payload that workers sent", &Counters::sent},
    {"sent_bytes_total", "Payload that workers got", &Counters::received},
};

void begin(std::string &text, const std::string &name, const char *type, const char *help) {
    text += "# HELP dtrain_server_" + name + " " + help + ".\n# TYPE dtrain_server_" + name + " " +
            type + "\n";
}

void line(std::string &text, const std::string &name, const std::string &labels, uint64_t value) {
    text += "dtrain_server_" + name + "{" + labels + "} " + std::to_string(value) + "\n";
}

void histogram(std::string &text, const std::string &name, const std::string &labels,
               const Histogram &histogram) {
    uint64_t count = 0;
    size_t last = Histogram::buckets - 1;
    while (last > 0 && histogram.count[last - 1] == 0) --last;
    for (size_t i = 0; i < last; ++i) {
        count += histogram.count[i];
        line(text, name + "_bucket", labels + ",le=\"" + std::to_string(Histogram::bound(i)) + "\"",
             count);
    }
    count += histogram.count[Histogram::buckets - 1];
    line(text, name + "_bucket", labels + ",le=\"+Inf\"", count);
    line(text, name + "_sum", labels, histogram.sum);
    line(text, name + "_count", labels, count);
}

} // namespace

std::string metrics_text(uint32_t server, const ServerReport &report) {
    const std::vector<TableReport> &tables = report.tables;
    std::string text;
    auto labels = [&](const TableReport &table) {
        return "server=\"" + std::to_string(server) + "\",table=\"" + label(table.name) + "\"";
    };
    auto each_worker = [&](const TableReport &table, auto &&f) {
        for (size_t w = 0; w < table.workers.size(); ++w)
            f(labels(table) + ",worker=\"" + std::to_string(w) + "\"", table.workers[w]);
    };
    begin(text, "table_bytes", "gauge", "Memory that the table takes here");
    for (const TableReport &table : tables) line(text, "table_bytes", labels(table), table.bytes);
    begin(text, "updates_total", "counter", "Updates applied to the table here");
    for (const TableReport &table : tables)
        line(text, "updates_total", labels(table), table.updates);
    for (const Metric &metric : metrics) {
        begin(text, metric.name, "counter", metric.help);
        for (const TableReport &table : tables)
            each_worker(table, [&](const std::string &all, const Counters &counters) {
                line(text, metric.name, all, counters.*metric.counter);
            });
    }
    begin(text, "push_staleness_updates", "histogram",
          "Updates between a worker's last pull and the arrival of its push");
    for (const TableReport &table : tables)
        each_worker(table, [&](const std::string &all, const Counters &counters) {
            histogram(text, "push_staleness_updates", all, counters.staleness);
        });
    auto each_peer = [&](const char *name, const char *help,
                         uint64_t (PeerMemory::*number)() const) {
        begin(text, name, "gauge", help);
        for (size_t w = 0; w < report.peers.size(); ++w)
            line(text, name,
                 "server=\"" + std::to_string(server) + "\",worker=\"" + std::to_string(w) + "\"",
                 (report.peers[w].*number)());
    };
    each_peer("peer_held_bytes", "Memory that the worker makes the server hold besides tables",
              &PeerMemory::held);
    each_peer("peer_held_bytes_max", "The most that it has held", &PeerMemory::most_held);
    return text;
}

} // namespace dtrain::ps
