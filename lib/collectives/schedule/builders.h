// The algorithms. Each writes the steps of one rank for size > 1 (over a graph: for any size).
// build() has checked the spec.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/schedule/plan.h"

namespace dtrain::collectives {

void direct_allreduce(Plan &plan);
void direct_reduce(Plan &plan);
void direct_reduce_scatter(Plan &plan);
void direct_allgather(Plan &plan);
void direct_broadcast(Plan &plan);
void direct_gather(Plan &plan);
void direct_scatter(Plan &plan);
void direct_alltoall(Plan &plan);
void direct_barrier(Plan &plan);

void direct_neighbor_average(Plan &plan);
void direct_neighbor_allgather(Plan &plan);
void direct_neighbor_alltoall(Plan &plan);

void ring_allreduce(Plan &plan);
void ring_reduce_scatter(Plan &plan);
void ring_allgather(Plan &plan);
void chain_broadcast(Plan &plan);

void doubling_allreduce(Plan &plan);
void doubling_allgather(Plan &plan);

void halving_allreduce(Plan &plan);
void halving_reduce(Plan &plan);
void halving_reduce_scatter(Plan &plan);

void hierarchical_allreduce(Plan &plan);
void hierarchical_tree_allreduce(Plan &plan);
void hierarchical_reduce(Plan &plan);
void hierarchical_tree_reduce(Plan &plan);
void hierarchical_broadcast(Plan &plan);
void hierarchical_tree_broadcast(Plan &plan);
void hierarchical_allgather(Plan &plan);
void hierarchical_reduce_scatter(Plan &plan);

void binomial_allreduce(Plan &plan);
void binomial_reduce(Plan &plan);
void binomial_broadcast(Plan &plan);
void binomial_gather(Plan &plan);
void binomial_scatter(Plan &plan);
void binomial_barrier(Plan &plan);

void double_tree_allreduce(Plan &plan);
void double_tree_reduce(Plan &plan);
void double_tree_broadcast(Plan &plan);

void adasum_allreduce(Plan &plan);

void bruck_allreduce(Plan &plan);
void bruck_allgather(Plan &plan);
void bruck_alltoall(Plan &plan);
void dissemination_barrier(Plan &plan);

} // namespace dtrain::collectives
