// The metrics of a server with their help texts, and their output.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/metrics_text.h"

namespace dtrain::ps {
namespace {

// Escapes quotes, backslashes and line ends as the format requires. Bytes that are not printable
// ASCII become '?', since a table's name may have any bytes.
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
    {"requests_total", "Requests, without repetitions", &Counters::requests},
    {"repeats_total", "Repetitions of requests", &Counters::repeats},
    {"refused_total", "Requests that ended in an error", &Counters::refused},
    {"dropped_total", "Requests that came too early and were requested again", &Counters::dropped},
    {"stale_total", "Pushes and clocks dropped because their step had ended", &Counters::stale},
    {"not_finite_total", "Pushes dropped because of a NaN or an infinity", &Counters::not_finite},
    {"elements_total", "Elements or rows of the requests", &Counters::elements},
    {"received_bytes_total", "Payload bytes received from workers", &Counters::sent},
    {"sent_bytes_total", "Payload bytes sent to workers", &Counters::received},
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
    begin(text, "table_bytes", "gauge", "Bytes of host memory that the table takes on this server");
    for (const TableReport &table : tables) line(text, "table_bytes", labels(table), table.bytes);
    begin(text, "table_device_bytes", "gauge", "Bytes of a GPU's memory that the table takes");
    for (const TableReport &table : tables)
        line(text, "table_device_bytes", labels(table), table.device_bytes);
    begin(text, "updates_total", "counter", "Updates applied to the table on this server");
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
    each_peer("peer_held_bytes", "Bytes beside tables that the server holds for the worker",
              &PeerMemory::held);
    each_peer("peer_held_bytes_max", "Maximum of peer_held_bytes so far", &PeerMemory::most_held);
    return text;
}

} // namespace dtrain::ps
