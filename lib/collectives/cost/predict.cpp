// Predicts the cost of a collective by the algorithm's formula, and adapts the network to where its
// messages go.
// SPDX-License-Identifier: Apache-2.0
#include "base/elementary.h"
#include "collectives/cost/price.h"

#include <limits>

namespace dtrain::collectives {
namespace {

// The network as seen by an algorithm that ignores hosts and goes in rank order: some of its steps
// stay inside a host.
NetworkModel mixed(const Topology &topology, Kind kind, Crossing crossing, int32_t size,
                   const NetworkModel &model) {
    const double hosts = topology.group_count(0), members = topology.largest_group(0);
    const bool all_rounds = crossing == Crossing::all_rounds;
    const double out =
        crossing == Crossing::one_rank ? hosts / size : logarithm(hosts) / logarithm(size);
    const bool is_rooted = kind == Kind::reduce || kind == Kind::broadcast ||
                           kind == Kind::gather || kind == Kind::scatter;
    // Only one rank of a host, or few, use its link at the same time.
    const bool is_lone = crossing == Crossing::one_rank || crossing == Crossing::few_ranks ||
                         (all_rounds && is_rooted);
    const double wire = model.ns_per_byte * (is_lone ? 1 : members);
    NetworkModel m = model;
    m.ns_per_byte = wire;
    if (all_rounds) return m;
    m.latency_ns = out * model.latency_ns + (1 - out) * model.host_latency_ns;
    m.overhead_ns = out * model.overhead_ns + (1 - out) * model.host_overhead_ns;
    m.ns_per_byte = is_lone ? wire : out * wire + (1 - out) * model.host_ns_per_byte;
    return m;
}

} // namespace

double predict(Kind kind, Algorithm algorithm, int32_t size, uint64_t bytes,
               const NetworkModel &model, uint64_t chunk_bytes) {
    const Method *method = find_method(kind, algorithm, size, true);
    if (method == nullptr || method->cost == nullptr)
        return std::numeric_limits<double>::infinity();
    if (size == 1 || (bytes == 0 && kind != Kind::barrier)) return 0;
    return method->cost(Formula(kind, size, bytes, model, chunk_bytes));
}

double predict_on(const Topology &topology, Kind kind, Algorithm algorithm, int32_t size,
                  uint64_t bytes, const NetworkModel &model, uint64_t chunk_bytes) {
    const Description &described = description(algorithm);
    if (described.cost_on_hosts == nullptr)
        return predict(kind, algorithm, size, bytes,
                       mixed(topology, kind, described.crossing, size, model), chunk_bytes);
    return bytes == 0 ? 0 : described.cost_on_hosts(topology, kind, bytes, model, chunk_bytes);
}

} // namespace dtrain::collectives
