// Predicts the cost of a collective where some ranks are nearer than others.
// SPDX-License-Identifier: Apache-2.0
#include "base/elementary.h"
#include "collectives/call/topology.h"
#include "collectives/cost/price.h"

#include <algorithm>
#include <cmath>

namespace dtrain::collectives {
namespace {

// The network as seen by an algorithm that ignores hosts and goes in rank order: some of its steps
// stay inside a host.
NetworkModel mixed(const Topology &topology, Kind kind, Algorithm algorithm, int32_t size,
                   const NetworkModel &model) {
    const double hosts = topology.group_count(0), members = topology.largest_group(0);
    const bool is_ring = algorithm == Algorithm::ring;
    const bool is_tree =
        algorithm == Algorithm::binomial_tree || algorithm == Algorithm::double_tree;
    const double out = is_ring ? hosts / size : logarithm(hosts) / logarithm(size);
    // Around the ring one rank of a host sends to other hosts, in a tree few ranks, else all at the
    // same time.
    const bool is_rooted = kind == Kind::reduce || kind == Kind::broadcast ||
                           kind == Kind::gather || kind == Kind::scatter;
    const bool is_lone =
        is_ring || is_tree || (is_rooted && algorithm != Algorithm::halving_doubling);
    const double wire = model.ns_per_byte * (is_lone ? 1 : members);
    NetworkModel m = model;
    m.ns_per_byte = wire;
    if (algorithm == Algorithm::direct || algorithm == Algorithm::bruck) return m;
    m.latency_ns = out * model.latency_ns + (1 - out) * model.host_latency_ns;
    m.overhead_ns = out * model.overhead_ns + (1 - out) * model.host_overhead_ns;
    m.ns_per_byte = is_lone ? wire : out * wire + (1 - out) * model.host_ns_per_byte;
    return m;
}

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

double allreduce(const Topology &topology, bool tree, uint64_t bytes, const NetworkModel &model,
                 uint64_t chunk_bytes) {
    const double hosts = topology.group_count(0), most = topology.largest_group(0),
                 leaders = tree ? 1 : topology.smallest_group(0);
    const double shard = double(bytes) / leaders, chunk = double(chunk_bytes);
    const Inside up = inside(most - 1, shard, model, model.reduce_ns_per_byte, chunk),
                 down = inside(most - 1, shard, model, 0, chunk);
    // The leaders of a host share its link: while one's message is in transit, others send.
    const double link = tree ? 0
                             : 2 * (hosts - 1) / hosts * double(bytes) * model.ns_per_byte +
                                   2 * (2 * model.overhead_ns + model.latency_ns);
    const double across = std::max(
        link, predict(Kind::allreduce, tree ? Algorithm::recursive_doubling : Algorithm::ring,
                      int32_t(hosts), uint64_t(std::ceil(shard)), model, chunk_bytes));
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

double predict_on(const Topology &topology, Kind kind, Algorithm algorithm, int32_t size,
                  uint64_t bytes, const NetworkModel &model, uint64_t chunk_bytes) {
    const bool tree = algorithm == Algorithm::hierarchical_tree;
    if (algorithm != Algorithm::hierarchical && !tree)
        return predict(kind, algorithm, size, bytes, mixed(topology, kind, algorithm, size, model),
                       chunk_bytes);
    if (bytes == 0) return 0;
    if (kind == Kind::allreduce) return allreduce(topology, tree, bytes, model, chunk_bytes);
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

} // namespace dtrain::collectives
