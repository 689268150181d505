// Writes the log lines and the table of option explain.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/communicator/explain.h"

#include "device/kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>

namespace dtrain::collectives {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
constexpr size_t shown = 3; // how many other algorithms a line lists

std::string in_us(double ns) {
    char text[32];
    std::snprintf(text, sizeof text, ns < 1e5 ? "%.2f us" : "%.0f us", ns / 1000);
    return std::isnan(ns) ? "-" : text;
}

// Why a call in shared memory takes its way; nullptr: the call uses messages.
const char *window_rule(std::string_view way) {
    struct Rule {
        std::string_view way;
        const char *why;
    };
    static constexpr Rule rules[] = {
        {"window exchange", "inside a host and small: all publish, all read"},
        {"window direct", "inside a host, all ranks' buffers are shared memory"},
        {"window device", "inside a host, all ranks' buffers are shared memory of one accelerator"},
        {"window kernel copies",
         "inside a host and large: each has the kernel copy from the others' buffers"},
        {"window pipeline",
         "inside a host, not all ranks' buffers are shared memory (see dtrain_mem_alloc())"},
    };
    for (const Rule &rule : rules)
        if (rule.way == way) return rule.why;
    return nullptr;
}

bool find_kind(const char *name, Kind &out) {
    for (int kind = 0; kind < kind_count; kind++)
        if (std::string_view(name) == kind_name(Kind(kind))) {
            out = Kind(kind);
            return true;
        }
    return false;
}

} // namespace

double Explainer::Row::median_ns() const {
    std::vector<float> sorted = last_ns;
    auto middle = sorted.begin() + std::ptrdiff_t(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    return double(*middle);
}

Explainer::Row &Explainer::row_of(const trace::Record &record, bool &is_new) {
    auto same = [&](const Row &row) {
        return row.kind == record.name && row.way == record.way &&
               std::bit_width(row.bytes) == std::bit_width(record.bytes);
    };
    auto found = std::find_if(rows_.begin(), rows_.end(), same);
    is_new = found == rows_.end();
    if (!is_new) return *found;
    return rows_.emplace_back(Row{.kind = record.name,
                                  .way = record.way,
                                  .bytes = record.bytes,
                                  .predicted_ns = unknown,
                                  .calls = 0,
                                  .total_ns = 0,
                                  .last_ns = {}});
}

void Explainer::ended(const engine::Operation &operation, int64_t elapsed_ns) {
    trace::Record record;
    operation.describe(record);
    Kind ignored;
    if (!find_kind(record.name, ignored)) return; // a message is not a collective
    std::lock_guard lock(mutex_);
    bool is_new = false;
    Row &row = row_of(record, is_new);
    if (is_new) explain(record, row, elapsed_ns);
    if (row.last_ns.size() < kept)
        row.last_ns.push_back(float(elapsed_ns));
    else
        row.last_ns[row.calls % kept] = float(elapsed_ns);
    row.calls++;
    row.total_ns += double(elapsed_ns);
}

void Explainer::explain(const trace::Record &record, Row &row, int64_t elapsed_ns) {
    CollectiveSpec spec;
    if (!find_kind(record.name, spec.kind)) return;
    spec.size = rules_.ranks;
    spec.count = record.bytes;
    spec.chunk_bytes = rules_.chunk_bytes;
    spec.topology = rules_.topology;
    const char *rule = window_rule(record.way);
    std::string others, why;
    size_t listed = 0;
    for (const Candidate &candidate : candidates(spec, rules_.model)) {
        const char *name = algorithm_name(candidate.algorithm);
        if (rule == nullptr && std::string_view(name) == record.way)
            row.predicted_ns = candidate.ns;
        else if (listed++ < shown)
            others += (others.empty() ? "" : ", ") + std::string(name) + " " + in_us(candidate.ns);
    }
    const bool is_forced = rules_.forced && spec.kind == Kind::allreduce;
    if (is_forced && rule == nullptr && std::isnan(row.predicted_ns)) // it has no formula
        row.predicted_ns = simulated(spec, *rules_.forced, rules_.model);
    if (rule != nullptr)
        why = rule;
    else if (is_forced)
        why = "forced by option allreduce.algorithm, predicted " + in_us(row.predicted_ns);
    else
        why = "predicted " + in_us(row.predicted_ns);
    const char *dtype = device::dtype_name(record.dtype);
    log_.tell("explain: %s of %llu bytes%s%s over %d ranks: %s (%s), took %s; %s: %s", row.kind,
              static_cast<unsigned long long>(record.bytes), dtype != nullptr ? " " : "",
              dtype != nullptr ? dtype : "", rules_.ranks, row.way, why.c_str(),
              in_us(double(elapsed_ns)).c_str(),
              rule != nullptr ? "predicted over messages" : "others predicted",
              others.empty() ? "none" : others.c_str());
}

void Explainer::tell_distance(const tp::SharedCopy &writes) {
    if (rows_.empty()) return;
    const tp::Remoteness &reader = writes.reader();
    const char *const where = writes.is_far() ? "far apart" : "near";
    if (reader.measurements() > 0)
        log_.tell(
            "explain: %d ranks: cores are %s: stores into %d lines that another rank has read "
            "take %lld ns (of %u measurements, the last ones)",
            rules_.ranks, where, int{tp::Remoteness::lines},
            static_cast<long long>(reader.median_ns()), unsigned{reader.measurements()});
    else
        log_.tell("explain: %d ranks: cores are taken to be %s: %s", rules_.ranks, where,
                  writes.is_measured() ? "it was not measured" : "option shm.distance says so");
}

Explainer::~Explainer() {
    if (rows_.empty()) return;
    log_.tell("explain: %d ranks: %-14s %12s  %-20s %9s %12s %12s %12s", rules_.ranks, "kind",
              "bytes from", "way", "calls", "predicted", "median", "mean");
    for (const Row &row : rows_)
        log_.tell("explain: %d ranks: %-14s %12llu  %-20s %9llu %12s %12s %12s", rules_.ranks,
                  row.kind, static_cast<unsigned long long>(std::bit_floor(row.bytes)), row.way,
                  static_cast<unsigned long long>(row.calls), in_us(row.predicted_ns).c_str(),
                  in_us(row.median_ns()).c_str(), in_us(row.total_ns / double(row.calls)).c_str());
}

} // namespace dtrain::collectives
