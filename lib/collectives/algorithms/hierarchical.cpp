// Inside each host, around a ring of hosts, and back: all-reduce, all-gather and reduce-scatter
// with every member of a host leading a share; broadcast and reduce along chains. The steps, with
// their sources, are in hierarchical_sums.cpp, hierarchical_rooted.cpp and hierarchical_blocks.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/algorithms/hierarchical_parts.h"
#include "engine/tag.h"

namespace dtrain::collectives {
namespace {

void allreduce(Plan &plan) { hierarchical_parts::allreduce(plan, ring_allreduce_among, false); }
void reduce(Plan &plan) { hierarchical_parts::reduce(plan, hierarchical_parts::chain); }
void broadcast(Plan &plan) { hierarchical_parts::broadcast(plan, hierarchical_parts::chain); }

double cost_on_hosts(const Topology &topology, Kind kind, uint64_t bytes, const NetworkModel &model,
                     uint64_t chunk_bytes) {
    return hierarchical_parts::cost(topology, false, kind, bytes, model, chunk_bytes);
}

// Without hosts the all-reduce equals the ring's.
constexpr Method methods[] = {
    {Kind::allreduce, allreduce, ring_allreduce_cost, engine::max_messages / 2 + 1},
    {Kind::reduce, reduce},
    {Kind::broadcast, broadcast},
    {Kind::allgather, hierarchical_parts::allgather, nullptr, engine::max_messages / 2},
    {Kind::reduce_scatter, hierarchical_parts::reduce_scatter, nullptr, engine::max_messages / 2},
};

} // namespace

constinit const Description algorithms::hierarchical = {
    .about = "inside each host, around a ring of hosts, and back; with a root: chains",
    .source = "Jia et al. 2018",
    .methods = methods,
    .cost_on_hosts = cost_on_hosts,
    .needs_hosts = true,
};

} // namespace dtrain::collectives
