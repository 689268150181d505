// Steps and formulas that several algorithms have in common.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/algorithms/algorithm.h"
#include "collectives/schedule/team.h"

namespace dtrain::collectives {

// All-reduce within a team: sum = the sum of all members' `own`, which is either apart from `sum`
// or the same memory. Ranks that exchange messages in such a call must not exchange any in other
// parts of the schedule, which cut them differently.
void ring_allreduce_among(Plan &plan, const Team &team, Extent own, Extent sum);
void doubling_allreduce_among(Plan &plan, const Team &team, Extent own, Extent sum);
// dst = the sum, in rank order, of `own` and what all other ranks send to this rank.
void sum_in_rank_order(Plan &plan, Extent own, Extent dst);
double ring_allreduce_cost(const Formula &f);
double doubling_allreduce_cost(const Formula &f);

// The barrier of Hensgen, Finkel, Manber.
void dissemination_barrier(Plan &plan);
double dissemination_cost(const Formula &f);

// Collects `blocks` blocks in rounds that double the number of blocks held; the last set is smaller
// unless `blocks` is a power of two. It waits only for the rounds that collect it: in a tree, those
// of a smaller tree.
double doubling_blocks_cost(const Formula &f, double blocks, double block, bool tree);

// Over a graph.
void neighbor_average(Plan &plan);
void neighbor_allgather(Plan &plan);
void neighbor_alltoall(Plan &plan);

// Adaptive summation (CollectiveSpec::adasum), whatever the algorithm.
void adasum_allreduce(Plan &plan);

} // namespace dtrain::collectives
