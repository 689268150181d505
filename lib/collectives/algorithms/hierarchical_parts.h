// Steps and formulas of the two hierarchical algorithms, which differ in what they do between the
// outermost groups.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/algorithms/shared.h"

namespace dtrain::collectives::hierarchical_parts {

// Adds up within a team of leaders of the outermost groups.
using Between = void (*)(Plan &plan, const Team &team, Extent own, Extent sum);
void allreduce(Plan &plan, Between between, bool one_leader);

// The tree among the members of one group: the leader has position 0.
using Shape = void (*)(int32_t size, int32_t at, int32_t &parent, std::vector<int32_t> &children);
void chain(int32_t size, int32_t at, int32_t &parent, std::vector<int32_t> &children);
void binomial(int32_t size, int32_t at, int32_t &parent, std::vector<int32_t> &children);
void broadcast(Plan &plan, Shape shape);
void reduce(Plan &plan, Shape shape);

void allgather(Plan &plan);
void reduce_scatter(Plan &plan);

// As CostOnHosts; tree: one leader per host, and trees instead of rings and chains.
double cost(const Topology &topology, bool tree, Kind kind, uint64_t bytes,
            const NetworkModel &model, uint64_t chunk_bytes);

} // namespace dtrain::collectives::hierarchical_parts
