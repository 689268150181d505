// Builds one rank's schedule of a collective: finds the builder for kind and algorithm, and runs
// it.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/build.h"

#include "collectives/schedule/builders.h"
#include "engine/tag.h"

#include <bit>

namespace dtrain::collectives {
namespace {

using enum Algorithm;
using enum Kind;

constexpr int32_t no_limit = INT32_MAX;

struct Builder {
    Algorithm algorithm;
    Kind kind;
    void (*build)(Plan &);
    int32_t max_size = no_limit;
    bool any_counts = true;     // supports the v-variant, too
    bool powers_of_two = false; // only for a power of two ranks
};

constexpr Builder builders[] = {
    {direct, allreduce, direct_allreduce},
    {direct, reduce, direct_reduce},
    {direct, reduce_scatter, direct_reduce_scatter},
    {direct, allgather, direct_allgather},
    {direct, broadcast, direct_broadcast},
    {direct, gather, direct_gather},
    {direct, scatter, direct_scatter},
    {direct, alltoall, direct_alltoall},
    {direct, barrier, direct_barrier},
    {direct, neighbor_average, direct_neighbor_average},
    {direct, neighbor_allgather, direct_neighbor_allgather},
    {direct, neighbor_alltoall, direct_neighbor_alltoall},
    {ring, allreduce, ring_allreduce, engine::max_messages / 2 + 1},
    {ring, reduce_scatter, ring_reduce_scatter, engine::max_messages + 1},
    {ring, allgather, ring_allgather, engine::max_messages + 1},
    {ring, broadcast, chain_broadcast},
    {recursive_doubling, allreduce, doubling_allreduce},
    {recursive_doubling, allgather, doubling_allgather, no_limit, true, true},
    {recursive_doubling, barrier, dissemination_barrier},
    {halving_doubling, allreduce, halving_allreduce},
    {halving_doubling, reduce, halving_reduce},
    {halving_doubling, reduce_scatter, halving_reduce_scatter},
    {binomial_tree, allreduce, binomial_allreduce},
    {binomial_tree, reduce, binomial_reduce},
    {binomial_tree, broadcast, binomial_broadcast},
    {binomial_tree, gather, binomial_gather},
    {binomial_tree, scatter, binomial_scatter},
    {binomial_tree, barrier, binomial_barrier},
    {double_tree, allreduce, double_tree_allreduce},
    {double_tree, reduce, double_tree_reduce},
    {double_tree, broadcast, double_tree_broadcast},
    {hierarchical, allreduce, hierarchical_allreduce, engine::max_messages / 2 + 1},
    {hierarchical, reduce, hierarchical_reduce},
    {hierarchical, broadcast, hierarchical_broadcast},
    {hierarchical, allgather, hierarchical_allgather, engine::max_messages / 2},
    {hierarchical, reduce_scatter, hierarchical_reduce_scatter, engine::max_messages / 2},
    {hierarchical_tree, allreduce, hierarchical_tree_allreduce},
    {hierarchical_tree, reduce, hierarchical_tree_reduce},
    {hierarchical_tree, broadcast, hierarchical_tree_broadcast},
    {bruck, allreduce, bruck_allreduce},
    {bruck, allgather, bruck_allgather},
    {bruck, alltoall, bruck_alltoall, no_limit, false},
    {bruck, barrier, dissemination_barrier},
};

const Builder *find(Kind kind, Algorithm algorithm, int32_t size, bool uniform) {
    for (const Builder &builder : builders) {
        if (builder.kind != kind || builder.algorithm != algorithm) continue;
        bool fits = size <= builder.max_size && (uniform || builder.any_counts) &&
                    (!builder.powers_of_two || std::has_single_bit(uint32_t(size)));
        return fits ? &builder : nullptr;
    }
    return nullptr;
}

} // namespace

bool supports(Kind kind, Algorithm algorithm, int32_t size, bool uniform) {
    return find(kind, algorithm, size, uniform) != nullptr;
}

Status build(const CollectiveSpec &spec, Algorithm algorithm, engine::Schedule &out) {
    if (Status s = validate(spec); s < 0) return s;
    if (spec.adasum && spec.size > 1) { // adasum ignores the algorithm, which is for sums
        Plan plan(spec, out);
        adasum_allreduce(plan);
        return plan.status();
    }
    bool uniform = spec.counts.empty() && spec.displs.empty() && spec.recv_counts.empty() &&
                   spec.recv_displs.empty();
    const Builder *builder = find(spec.kind, algorithm, spec.size, uniform);
    if (!builder)
        return fail(DTRAIN_ERR_UNSUPPORTED, "%s has no algorithm \"%s\" for %d ranks%s",
                    kind_name(spec.kind), algorithm_name(algorithm), spec.size,
                    uniform ? "" : " with counts that differ");
    // A single rank needs a copy at most.
    if (spec.size == 1) builder = find(spec.kind, direct, 1, uniform);
    Plan plan(spec, out);
    builder->build(plan);
    return plan.status();
}

} // namespace dtrain::collectives
