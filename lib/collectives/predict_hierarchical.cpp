// What an all-reduce costs where some ranks are nearer than others.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/price.h"
#include "collectives/topology.h"

#include <algorithm>
#include <cmath>

namespace dtrain::collectives {
namespace {

// As the steps of an algorithm that knows nothing of hosts meet it, in rank order: some stay
// inside.
NetworkModel mixed(const Topology &topology, Algorithm algorithm, int32_t size,
                   const NetworkModel &model) {
    const double hosts = topology.group_count(0), members = topology.largest_group(0);
    const bool is_ring = algorithm == Algorithm::ring;
    const bool is_tree =
        algorithm == Algorithm::binomial_tree || algorithm == Algorithm::double_tree;
    const double out = is_ring ? hosts / size : std::log2(hosts) / std::log2(size);
    // Around the ring one rank of a host sends out, in a tree few, else all at the same time.
    const double wire = model.ns_per_byte * (is_ring || is_tree ? 1 : members);
    NetworkModel m = model;
    m.ns_per_byte = wire;
    if (algorithm == Algorithm::direct || algorithm == Algorithm::bruck) return m;
    m.latency_ns = out * model.latency_ns + (1 - out) * model.host_latency_ns;
    m.overhead_ns = out * model.overhead_ns + (1 - out) * model.host_overhead_ns;
    m.ns_per_byte = is_ring || is_tree ? wire : out * wire + (1 - out) * model.host_ns_per_byte;
    return m;
}

struct Inside {
    double first, stream; // until a leader has everybody's first chunk, or sent it; all of them
};

// The host's part before or after what happens between hosts.
Inside inside(double members, double shard, const NetworkModel &m, double work, double chunk) {
    double first = std::min(shard, chunk), messages = members * std::ceil(shard / chunk);
    double wire = m.host_ns_per_byte;
    double gap = std::max(m.host_overhead_ns + first * work, first * wire);
    return {2 * m.host_overhead_ns + m.host_latency_ns + first * (wire + work) +
                (members - 1) * gap,
            messages * m.host_overhead_ns + members * shard * std::max(wire, work)};
}

} // namespace

double predict_on(const Topology &topology, Algorithm algorithm, int32_t size, uint64_t bytes,
                  const NetworkModel &model, uint64_t chunk_bytes) {
    const bool tree = algorithm == Algorithm::hierarchical_tree;
    if (algorithm != Algorithm::hierarchical && !tree) {
        return predict(Kind::allreduce, algorithm, size, bytes,
                       mixed(topology, algorithm, size, model), chunk_bytes);
    }
    const double hosts = topology.group_count(0), most = topology.largest_group(0),
                 leaders = tree ? 1 : topology.smallest_group(0);
    const double shard = double(bytes) / leaders, chunk = double(chunk_bytes);
    const Inside up = inside(most - 1, shard, model, model.reduce_ns_per_byte, chunk),
                 down = inside(most - 1, shard, model, 0, chunk);
    // The leaders of a host share its link: while one's message is on its way, others send.
    const double link = tree ? 0
                             : 2 * (hosts - 1) / hosts * double(bytes) * model.ns_per_byte +
                                   2 * (2 * model.overhead_ns + model.latency_ns);
    const double across = std::max(
        link, predict(Kind::allreduce, tree ? Algorithm::recursive_doubling : Algorithm::ring,
                      int32_t(hosts), uint64_t(std::ceil(shard)), model, chunk_bytes));
    // Chunks of the three parts overlap; what does not hide is the first of each.
    return std::max({up.first + across + down.first, up.stream + down.stream,
                     0.8 * (up.stream + down.stream) + across});
}

} // namespace dtrain::collectives
