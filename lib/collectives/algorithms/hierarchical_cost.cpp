// What the hierarchical algorithms cost on a network with hosts.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/algorithms/hierarchical_parts.h"

#include <algorithm>
#include <cmath>

namespace dtrain::collectives::hierarchical_parts {
namespace {

struct Inside {
    // Time until a leader has received or sent all members' first chunks; then all their chunks.
    double first, stream;
};

// The part inside a host, before or after the part between hosts.
Inside inside(double members, double shard, const NetworkModel &m, double work, double chunk) {
    double first = std::min(shard, chunk), messages = members * std::ceil(shard / chunk);
    double wire = m.host_ns_per_byte;
    double gap = std::max(m.host_overhead_ns + first * work, first * wire);
    return {2 * m.host_overhead_ns + m.host_latency_ns + first * (wire + work) +
                (members - 1) * gap,
            messages * m.host_overhead_ns + members * shard * std::max(wire, work)};
}

double allreduce_cost(const Topology &topology, bool tree, uint64_t bytes,
                      const NetworkModel &model, uint64_t chunk_bytes) {
    const double hosts = topology.group_count(0), most = topology.largest_group(0),
                 leaders = tree ? 1 : topology.smallest_group(0);
    const double shard = double(bytes) / leaders, chunk = double(chunk_bytes);
    const Inside up = inside(most - 1, shard, model, model.reduce_ns_per_byte, chunk),
                 down = inside(most - 1, shard, model, 0, chunk);
    // The leaders of a host share its link: while one's message is in transit, others send.
    const double link = tree ? 0
                             : 2 * (hosts - 1) / hosts * double(bytes) * model.ns_per_byte +
                                   2 * (2 * model.overhead_ns + model.latency_ns);
    const Formula between(Kind::allreduce, int32_t(hosts), uint64_t(std::ceil(shard)), model,
                          chunk_bytes);
    const double across =
        std::max(link, tree ? doubling_allreduce_cost(between) : ring_allreduce_cost(between));
    // Chunks of the three parts overlap; only the first chunk of each part remains visible.
    return std::max({up.first + across + down.first, up.stream + down.stream,
                     0.8 * (up.stream + down.stream) + across});
}

// For whole numbers from 1 on.
double floor_log2(double n) { return std::ilogb(n); }
double ceil_log2(double n) { return floor_log2(n) + (std::scalbn(1.0, std::ilogb(n)) < n); }

struct Path {
    double overhead, latency, wire, work;
    double hop(double bytes) const { return 2 * overhead + latency + bytes * (wire + work); }
};

// Broadcast and reduce: the path of the first chunk, and the interval of the next ones at the root.
double rooted(double hosts, double members, bool tree, double bytes, const Path &far,
              const Path &near, double chunk_bytes) {
    const double chunks = std::max(1.0, std::ceil(bytes / chunk_bytes)), chunk = bytes / chunks;
    auto depth = [&](double n) { return tree ? floor_log2(n) : n - 1; };
    auto children = [&](double n) { return n > 1 ? (tree ? ceil_log2(n) : 1) : 0; };
    const double processor = children(hosts) * (far.overhead + chunk * far.work) +
                             children(members) * (near.overhead + chunk * near.work) +
                             (tree ? 0 : far.overhead);
    const double gap = std::max(
        {processor, children(hosts) * chunk * far.wire, children(members) * chunk * near.wire});
    // On the longest path of a tree, some ranks wait for their parent's other child.
    auto way = [&](double n, const Path &path) {
        double waits = tree ? ceil_log2(n) - depth(n) : 0;
        return depth(n) * path.hop(chunk) +
               waits * std::max(path.overhead + chunk * path.work, chunk * path.wire);
    };
    return way(hosts, far) + way(members, near) + (chunks - 1) * gap;
}

// All-gather and reduce-scatter of blocks: a ring between hosts for each leader, over one link, and
// the exchange inside the host, which overlaps with it except for one chunk.
double of_blocks(double hosts, double members, double leaders, double block, const Path &far,
                 const Path &near, double chunk_bytes) {
    const double set = block * members / leaders, chunk = std::min(set, chunk_bytes),
                 chunks = std::ceil(set / chunk_bytes);
    const double round = std::max(
        {far.hop(chunk), chunks * (2 * far.overhead + chunk * far.work), leaders * set * far.wire});
    const double across = (hosts - 1) * round;
    const double all = hosts * members * block, out = (members - 1) * hosts * set;
    const double messages = (members - 1) * hosts * chunks;
    const double within =
        std::max({2 * messages * near.overhead + out * near.work, std::max(all, out) * near.wire});
    const double last = near.hop(chunk) + (members - 1) * near.overhead;
    return std::max(across + last + within / hosts, within + far.hop(chunk));
}

} // namespace

double cost(const Topology &topology, bool tree, Kind kind, uint64_t bytes,
            const NetworkModel &model, uint64_t chunk_bytes) {
    if (kind == Kind::allreduce) return allreduce_cost(topology, tree, bytes, model, chunk_bytes);
    const double hosts = topology.group_count(0), members = topology.largest_group(0);
    const bool sums = kind == Kind::reduce || kind == Kind::reduce_scatter;
    const double work = sums ? model.reduce_ns_per_byte : 0;
    const Path far = {model.overhead_ns, model.latency_ns, model.ns_per_byte, work},
               near = {model.host_overhead_ns, model.host_latency_ns, model.host_ns_per_byte, work};
    if (kind == Kind::reduce || kind == Kind::broadcast)
        return rooted(hosts, members, tree, double(bytes), far, near, double(chunk_bytes));
    return of_blocks(hosts, members, topology.smallest_group(0), double(bytes), far, near,
                     double(chunk_bytes));
}

} // namespace dtrain::collectives::hierarchical_parts
