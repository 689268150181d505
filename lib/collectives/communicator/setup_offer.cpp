// What rank 0 decides: the transports' own figures, or those of a tuning file that was made on this
// machine.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/host/cores.h"
#include "collectives/communicator/setup.h"
#include "collectives/cost/choose.h"
#include "collectives/window/window_exchange.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <set>
#include <string>

namespace dtrain::collectives {
namespace {

// Piece size of transports that write into the peer's memory
constexpr uint64_t written_chunk = 1 << 20;

// A connection over a long way is taken to carry 1 Gbit/s: TCP begins slowly after each pause. If
// it carries more, an algorithm may take one way too many; if it carried less than assumed, all
// bytes would take so much longer.
constexpr double far_ns_per_byte = 8;

// A message between hosts takes as long as the way between them. The transports know nothing of it,
// so the control connections tell, where it is much longer than what transports say. In steps of
// two, as the same job should choose the same algorithms each time that it runs.
double way_ns(cluster::Session &session) {
    constexpr uint64_t shortest = 100 * us;
    const auto way = uint64_t(session.job().round_trip_ns() / 2);
    return way < shortest ? 0 : double(std::bit_floor(way + way / 2));
}

// A transport's latency and bandwidth for one message between two ranks with a core each.
struct Reach {
    double latency_ns = 0, ns_per_byte = 0;

    void slow_down_to(const dtrain_tp_attr_t &attr, bool is_remote, uint32_t rails) {
        slow_down(attr.latency_ns, attr.bandwidth_bps, rails);
        if (is_remote) slow_down(attr.remote_latency_ns, attr.remote_bandwidth_bps, rails);
    }
    void slow_down(uint64_t latency, uint64_t bandwidth_bps, uint32_t rails) {
        latency_ns = std::max(latency_ns, double(latency));
        if (bandwidth_bps > 0)
            ns_per_byte = std::max(ns_per_byte, 1e9 / double(bandwidth_bps) / rails);
    }
    double overhead_ns() const {
        return std::min(latency_ns * 3 / 8, 2500.0); // overhead is at most that of system calls
    }
};

NetworkModel network_model(const Reach &far, const Reach &near, uint32_t ranks_per_core) {
    // Processor work takes longer when ranks share cores; on one host that includes sending.
    const double shared = ranks_per_core;
    return {.latency_ns = far.latency_ns - 2 * far.overhead_ns(),
            .overhead_ns = far.overhead_ns() * shared,
            .ns_per_byte = far.ns_per_byte * shared,
            .reduce_ns_per_byte = 0.04 * shared,
            .copy_ns_per_byte = 0.03 * shared,
            .host_latency_ns = near.latency_ns - 2 * near.overhead_ns(),
            .host_overhead_ns = near.overhead_ns() * shared,
            .host_ns_per_byte = near.ns_per_byte * shared,
            .ranks_per_core = shared};
}

// Replaces the transports' own figures with those of the tuning file, if it was made on this
// machine.
void apply_tuning(cluster::Session &session, const Membership &ranks, Setup &setup) {
    std::string path(session.options().text("tuning.file"));
    if (path.empty() || ranks.size() == 1) return;
    Log &log = session.agent().log();
    Tuning tuning;
    if (read_tuning(path.c_str(), tuning) != DTRAIN_OK) {
        log.write(DTRAIN_LOG_WARN, "tuning file %s: %s; the built-in cost model is used",
                  path.c_str(), error_text());
        return;
    }
    std::string differs = difference(tuning.machine, machine_of(session, ranks));
    if (!differs.empty()) {
        // A part of the job may use fewer transports than the whole job: that is no reason to warn.
        log.write(uint32_t(ranks.size()) == session.workers() ? DTRAIN_LOG_WARN : DTRAIN_LOG_INFO,
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

} // namespace

Machine machine_of(cluster::Session &session, const Membership &ranks) {
    Machine machine;
    machine.cpu = cpu_name();
    machine.cores = cluster::usable_cores();
    machine.ranks = session.workers();
    std::set<std::string> hosts, names;
    for (uint32_t m = 0; m < session.workers(); m++) hosts.insert(session.job().members()[m].host);
    machine.hosts = hosts.size();
    machine.bandwidth = UINT64_MAX;
    for (uint32_t member : ranks.members) {
        if (member == ranks.members[ranks.rank]) continue; // no transport leads to the rank itself
        transport::Device &device = *session.mesh().device(member);
        names.insert(std::string(device.name()));
        machine.bandwidth = std::min(machine.bandwidth, uint64_t(device.attr().bandwidth_bps));
    }
    for (const std::string &name : names)
        machine.transports += (machine.transports.empty() ? "" : "+") + name;
    return machine;
}

Setup offer(cluster::Session &session, const Membership &ranks, const Topology &topology) {
    Setup setup = {};
    const Options &options = session.options();
    engine::Mesh &mesh = session.mesh();
    setup.chunk_bytes = usual_chunk;
    setup.choice_rules = choice_rules;
    setup.adapts = int32_t(options.number("tuning.adapt"));
    Algorithm algorithm; // "auto" and "window" parse to none: no algorithm over messages
    if (parse_algorithm(options.text("allreduce.algorithm"), algorithm))
        std::snprintf(setup.algorithm, sizeof setup.algorithm, "%s", algorithm_name(algorithm));
    Reach far, near; // the slowest transport counts
    const double way = way_ns(session);
    const std::string &own_host = session.job().members()[session.self()].host;
    for (size_t r = 0; r < ranks.members.size(); r++) {
        const dtrain_tp_attr_t &attr = mesh.device(ranks.members[r])->attr();
        const bool is_remote = session.job().members()[ranks.members[r]].host != own_host;
        const uint32_t rails = mesh.rails(ranks.members[r]);
        far.slow_down_to(attr, is_remote, rails);
        // Those that write into the peer's memory need not take the way of the control connections.
        if (is_remote && !mesh.device(ranks.members[r])->has(DTRAIN_TP_CAP_PUT)) {
            far.latency_ns = std::max(far.latency_ns, way);
            if (way > 0) far.ns_per_byte = std::max(far.ns_per_byte, far_ns_per_byte);
        }
        // Transports that write into the peer's memory wait for each message's target address, so
        // pieces are larger; but there must be pieces for all rails.
        if (mesh.device(ranks.members[r])->has(DTRAIN_TP_CAP_PUT))
            setup.chunk_bytes = std::max(setup.chunk_bytes, written_chunk / rails);
        if (topology.levels() > 0 && topology.group(0, int32_t(r)) == topology.group(0, 0))
            near.slow_down_to(attr, is_remote, rails);
    }
    setup.model = network_model(far, near, session.ranks_per_core());
    setup.exchange_bytes = WindowExchange::default_allreduce_bytes;
    apply_tuning(session, ranks, setup);
    if (const int64_t chunk = options.number("chunk.bytes"); chunk > 0)
        setup.chunk_bytes = uint64_t(chunk);
    return setup;
}

} // namespace dtrain::collectives
