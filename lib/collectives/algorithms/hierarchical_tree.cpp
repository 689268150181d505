// One leader per host, and recursive doubling or binomial trees between the leaders; for short
// vectors. The steps, with their sources, are in hierarchical_sums.cpp and hierarchical_rooted.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/algorithms/hierarchical_parts.h"

namespace dtrain::collectives {
namespace {

void allreduce(Plan &plan) { hierarchical_parts::allreduce(plan, doubling_allreduce_among, true); }
void reduce(Plan &plan) { hierarchical_parts::reduce(plan, hierarchical_parts::binomial); }
void broadcast(Plan &plan) { hierarchical_parts::broadcast(plan, hierarchical_parts::binomial); }

double cost_on_hosts(const Topology &topology, Kind kind, uint64_t bytes, const NetworkModel &model,
                     uint64_t chunk_bytes) {
    return hierarchical_parts::cost(topology, true, kind, bytes, model, chunk_bytes);
}

// Without hosts the all-reduce equals recursive doubling.
constexpr Method methods[] = {
    {Kind::allreduce, allreduce, doubling_allreduce_cost},
    {Kind::reduce, reduce},
    {Kind::broadcast, broadcast},
};

} // namespace

constinit const Description algorithms::hierarchical_tree = {
    .about = "one rank per host, recursive doubling between them; with a root: binomial trees",
    .source = "Karonis et al. 2000",
    .methods = methods,
    .cost_on_hosts = cost_on_hosts,
    .needs_hosts = true,
};

} // namespace dtrain::collectives
