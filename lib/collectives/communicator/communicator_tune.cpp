// Fits the cost model to the machine, and applies a tuning file.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/host/cores.h"
#include "collectives/communicator/communicator.h"
#include "collectives/communicator/measure.h"
#include "collectives/communicator/plan_cache.h"
#include "collectives/cost/tuning.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace dtrain::collectives {
namespace {

constexpr uint64_t exchange_sizes[] = {4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10};
constexpr uint64_t chunk_sizes[] = {64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20};
constexpr uint64_t chunked_bytes = 4 << 20;
constexpr uint64_t eager_sizes[] = {2 << 10,  4 << 10,  8 << 10,   16 << 10,
                                    32 << 10, 64 << 10, 128 << 10, 256 << 10};
constexpr uint64_t least_eager = 1 << 10;
constexpr double clearly = 0.95; // smaller differences are noise

} // namespace

// Describes the job, not this communicator, so that a tuning file serves parts of the job, too.
Machine Communicator::machine() const {
    Machine machine;
    machine.cpu = cpu_name();
    machine.cores = cluster::usable_cores();
    machine.ranks = session_->workers();
    std::set<std::string> hosts, names;
    for (uint32_t m = 0; m < session_->workers(); m++)
        hosts.insert(session_->job().members()[m].host);
    machine.hosts = hosts.size();
    machine.bandwidth = UINT64_MAX;
    for (uint32_t member : members_) {
        if (member == members_[rank_]) continue; // no transport leads to the rank itself
        transport::Device &device = *session_->mesh().device(member);
        names.insert(std::string(device.name()));
        machine.bandwidth = std::min(machine.bandwidth, uint64_t(device.attr().bandwidth_bps));
    }
    for (const std::string &name : names)
        machine.transports += (machine.transports.empty() ? "" : "+") + name;
    return machine;
}

// Replaces the transports' own figures with those of the tuning file, if it was made on this
// machine.
void Communicator::apply_tuning(Setup &setup) const {
    std::string path(session_->options().text("tuning.file"));
    if (path.empty() || size() == 1) return;
    Log &log = agent_.log();
    Tuning tuning;
    if (read_tuning(path.c_str(), tuning) != DTRAIN_OK) {
        log.write(DTRAIN_LOG_WARN, "tuning file %s: %s; the built-in cost model is used",
                  path.c_str(), error_text());
        return;
    }
    std::string differs = difference(tuning.machine, machine());
    if (!differs.empty()) {
        // A part of the job may use fewer transports than the whole job: that is no reason to warn.
        log.write(uint32_t(size()) == session_->workers() ? DTRAIN_LOG_WARN : DTRAIN_LOG_INFO,
                  "tuning file %s is of another machine or job: %s; the built-in cost model is "
                  "used",
                  path.c_str(), differs.c_str());
        return;
    }
    NetworkModel model = tuning.model; // the file has no figures for ranks of one host
    model.host_latency_ns = setup.model.host_latency_ns;
    model.host_overhead_ns = setup.model.host_overhead_ns;
    model.host_ns_per_byte = setup.model.host_ns_per_byte;
    setup.model = model;
    setup.exchange_bytes = tuning.exchange_bytes;
    setup.chunk_bytes = tuning.chunk_bytes;
    setup.eager_bytes = tuning.eager_bytes;
}

// Called by all ranks at the same point in the order of calls.
void Communicator::set_limits(uint64_t exchange_bytes, uint64_t chunk_bytes, bool by_messages) {
    agent_.locked([&] { session_->staging().widen(chunk_bytes); });
    std::lock_guard order(order_);
    exchange_bytes_ = exchange_bytes;
    chunk_bytes_ = chunk_bytes;
    allreduce_by_messages_ = by_messages;
    prepared_.is_valid = false;
}

// Finds the largest size at which reading everything from all ranks is not slower than the
// pipeline.
Status Communicator::find_exchange_limit(Measurement &measurement, uint64_t &best) {
    for (uint64_t bytes : exchange_sizes) {
        double exchange, pipeline;
        set_limits(bytes, chunk_bytes_, false);
        if (Status s = measurement.allreduce(bytes, exchange); s != DTRAIN_OK) return s;
        set_limits(0, chunk_bytes_, false);
        if (Status s = measurement.allreduce(bytes, pipeline); s != DTRAIN_OK) return s;
        if (pipeline < exchange * clearly) break;
        best = bytes;
    }
    return DTRAIN_OK;
}

// Sets the limit of the transport between the two halves of the ranks, over which messages are
// measured. Returns the old limit.
uint64_t Communicator::limit_eager(uint64_t bytes) {
    const int32_t other = (rank_ + size() / 2) % size();
    const transport::Device &measured = *session_->mesh().device(members_[other]);
    uint64_t before = 0;
    agent_.locked([&] {
        before = measured.eager_limit();
        for (auto &device : agent_.devices())
            if (device->name() == measured.name()) device->limit_eager(bytes);
    });
    return before;
}

// Finds the largest size at which an eager message is as fast as one that waits for its receiver.
// Compares the least of several medians, taken in turn, because a single one is easily disturbed.
Status Communicator::find_eager_limit(Measurement &measurement, uint64_t &best) {
    for (uint64_t bytes : eager_sizes) {
        double least[2] = {HUGE_VAL, HUGE_VAL}; // rendezvous, eager
        for (int turn = 0; turn < 6; turn++) {
            double ns;
            limit_eager(turn % 2 ? UINT64_MAX : least_eager);
            if (Status s = measurement.messages(bytes, ns); s != DTRAIN_OK) return s;
            least[turn % 2] = std::min(least[turn % 2], ns);
        }
        if (least[0] < least[1] * clearly) break;
        best = bytes;
    }
    return DTRAIN_OK;
}

Status Communicator::find_chunk(Measurement &measurement, uint64_t &best) {
    double least = 0;
    for (uint64_t bytes : chunk_sizes) {
        double ns;
        set_limits(exchange_bytes_, bytes, true);
        if (Status s = measurement.allreduce(chunked_bytes, ns); s != DTRAIN_OK) return s;
        if (least > 0 && ns > least * clearly) continue;
        least = ns;
        best = bytes;
    }
    return DTRAIN_OK;
}

Status Communicator::measure(Tuning &out) {
    const bool by_messages = allreduce_by_messages_;
    const uint64_t exchange_bytes = exchange_bytes_, chunk_bytes = chunk_bytes_;
    out.machine = machine();
    out.exchange_bytes = exchange_bytes;
    out.chunk_bytes = chunk_bytes;
    out.eager_bytes = least_eager;
    Measurement measurement(*this);
    Status s = measurement.network(out.model);
    if (s == DTRAIN_OK) {
        std::lock_guard order(order_); // chunks are measured with the algorithms that it leads to
        plans_->set_choice(out.model, std::nullopt);
    }
    if (s == DTRAIN_OK && window_ != nullptr)
        s = find_exchange_limit(measurement, out.exchange_bytes);
    const uint64_t eager_bytes = limit_eager(UINT64_MAX);
    if (s == DTRAIN_OK) s = find_eager_limit(measurement, out.eager_bytes);
    limit_eager(out.eager_bytes); // chunk sizes depend on it
    if (s == DTRAIN_OK) s = find_chunk(measurement, out.chunk_bytes);
    limit_eager(eager_bytes);
    set_limits(exchange_bytes, chunk_bytes, by_messages);
    return s;
}

Status Communicator::tune(const char *path) {
    if (size() == 1) return fail(DTRAIN_ERR_INVALID, "tune: tuning needs at least two ranks");
    Tuning tuning;
    if (Status s = measure(tuning); s != DTRAIN_OK) return fail_within(s, "tuning");
    int32_t written = DTRAIN_OK;
    if (rank_ == 0) written = write_tuning(path, tuning);
    const int32_t mine = written;
    Call call;
    call.kind = Kind::broadcast;
    call.recv = &written;
    call.count = sizeof written;
    call.root = 0;
    std::string text = error_text();
    if (Status s = run(call); s != DTRAIN_OK) return s;
    if (mine != DTRAIN_OK) return fail(mine, "%s", text.c_str());
    return written == DTRAIN_OK ? written : fail(written, "tune: rank 0 could not write %s", path);
}

} // namespace dtrain::collectives
