// Recursive halving and doubling: every round halves (doubles) the bytes, with partners at distance
// n/2 .. 1 (1 .. n/2). Takes 2 log2(n) latencies, and moves the fewest bytes for powers of two.
// SPDX-License-Identifier: Apache-2.0
//
// Source: Rabenseifner: Optimization of collective reduction operations, ICCS 2004.
#include "collectives/algorithms/shared.h"
#include "collectives/call/fold.h"
#include "collectives/call/layout.h"

#include <algorithm>
#include <vector>

namespace dtrain::collectives {
namespace {

// The vector cut into one part per participant, in bytes: part i is [bounds[i], bounds[i + 1]).
using Bounds = std::vector<uint64_t>;

struct Range {
    int32_t first, count; // participants
};

Bounds equal_parts(const CollectiveSpec &spec, int32_t parts) {
    Bounds bounds;
    for (int32_t i = 0; i <= parts; i++)
        bounds.push_back(part_begin(spec.count, uint64_t(parts), uint64_t(i)) * spec.element_bytes);
    return bounds;
}

// The memory in which sums accumulate: it holds the vector from byte `begin` on.
struct Window {
    Extent memory;
    uint64_t begin = 0;
};

// The bytes of `window` that belong to the parts of these participants.
Extent within(const Window &window, const Bounds &bounds, Range range) {
    uint64_t begin = bounds[size_t(range.first)];
    uint64_t end = bounds[size_t(range.first + range.count)];
    return window.memory.part(begin - window.begin, end - begin);
}

// Holds the half of the vector that a participant keeps in the first round, or the whole vector for
// a participant that received its mate's.
Window window_in_scratch(Plan &plan, const Fold &fold, const Bounds &bounds) {
    int32_t half =
        fold.paired || fold.participants == 1 ? fold.participants : fold.participants / 2;
    Range kept{fold.index / half * half, half};
    uint64_t begin = bounds[size_t(kept.first)];
    return {plan.scratch(bounds[size_t(kept.first + half)] - begin), begin};
}

// Leaves the sum of this rank's own part over all ranks in `sums`. Receives the mate's vector
// first.
void reduce_by_halving(Plan &plan, const Fold &fold, const Bounds &bounds, const Window &sums) {
    Window source{plan.in(0, bounds.back()), 0};
    Range held{0, fold.participants};
    if (fold.paired) {
        plan.recv_reduce(fold.mate, within(source, bounds, held), within(sums, bounds, held));
        source = sums;
    }
    while (held.count > 1) {
        int32_t half = held.count / 2;
        bool upper = fold.index & half;
        Range kept{held.first + (upper ? half : 0), half};
        Range given{held.first + (upper ? 0 : half), half};
        int32_t partner = fold.rank_of(fold.index ^ half);
        plan.send(partner, within(source, bounds, given));
        plan.recv_reduce(partner, within(source, bounds, kept), within(sums, bounds, kept));
        source = sums;
        held = kept;
    }
}

void allreduce(Plan &plan) {
    uint64_t bytes = input_bytes(plan.spec);
    plan.limit_messages(2, bytes);
    Fold fold(plan.size, plan.rank);
    Window sums{plan.out(0, bytes), 0};
    if (!fold.keeper) {
        plan.send(fold.mate, plan.in(0, bytes));
        return plan.recv(fold.mate, sums.memory);
    }
    Bounds bounds = equal_parts(plan.spec, fold.participants);
    reduce_by_halving(plan, fold, bounds, sums);
    plan.finish(within(sums, bounds, {fold.index, 1}));
    for (int32_t held = 1; held < fold.participants; held *= 2) {
        int32_t partner = fold.rank_of(fold.index ^ held), mine = fold.index & ~(held - 1);
        plan.send(partner, within(sums, bounds, {mine, held}));
        plan.recv(partner, within(sums, bounds, {mine ^ held, held}));
    }
    if (fold.paired) plan.send(fold.mate, sums.memory);
}

void reduce(Plan &plan) {
    uint64_t bytes = input_bytes(plan.spec);
    plan.limit_messages(2, bytes);
    int32_t root = plan.spec.root;
    Fold fold(plan.size, plan.rank, root);
    if (!fold.keeper) return plan.send(fold.mate, plan.in(0, bytes));
    Bounds bounds = equal_parts(plan.spec, fold.participants);
    Window sums =
        plan.rank == root ? Window{plan.out(0, bytes), 0} : window_in_scratch(plan, fold, bounds);
    reduce_by_halving(plan, fold, bounds, sums);
    plan.finish(within(sums, bounds, {fold.index, 1}));
    // Gathers the parts on the root with a binomial tree.
    int32_t distance = fold.index ^ fold.index_of(root);
    for (int32_t held = 1; held < fold.participants; held *= 2) {
        int32_t partner = fold.rank_of(fold.index ^ held), mine = fold.index & ~(held - 1);
        if (distance & held) return plan.send(partner, within(sums, bounds, {mine, held}));
        plan.recv(partner, within(sums, bounds, {mine ^ held, held}));
    }
}

void reduce_scatter(Plan &plan) {
    Layout blocks(plan.spec);
    uint64_t bytes = blocks.end();
    plan.limit_messages(2, bytes);
    Fold fold(plan.size, plan.rank);
    Extent own = plan.out(0, blocks.bytes(plan.rank));
    if (!fold.keeper) {
        plan.send(fold.mate, plan.in(0, bytes));
        return plan.recv(fold.mate, own);
    }
    Bounds bounds;
    for (int32_t i = 0; i < fold.participants; i++)
        bounds.push_back(blocks.offset(fold.first_rank(i)));
    bounds.push_back(bytes);
    Window sums = window_in_scratch(plan, fold, bounds);
    reduce_by_halving(plan, fold, bounds, sums);
    Extent part = within(sums, bounds, {fold.index, 1});
    plan.finish(part);
    auto block = [&](int32_t rank) {
        return sums.memory.part(blocks.offset(rank) - sums.begin, blocks.bytes(rank));
    };
    if (fold.paired) plan.send(fold.mate, block(fold.mate));
    plan.copy(block(plan.rank), own);
}

double cost(const Formula &f) {
    bool scatters = f.kind == Kind::reduce_scatter;
    double total = scatters ? f.m * f.n : f.m, time = 0;
    for (double parts = 2; parts <= f.n; parts *= 2) {
        time += f.round(f.cut(total / parts, 2), f.sum);
        if (!scatters) time += f.round(f.cut(total / parts, 2));
    }
    if (scatters) time += f.m * f.copy;
    if (!f.folded()) return time;
    Chunks chunks = f.cut(total, 2);
    time += f.round(chunks, f.sum); // the first round's chunks use the same link
    if (!f.lonely_fold() && chunks.count > 1) time += total / 2 * f.wire;
    if (f.kind == Kind::allreduce) time += f.hop(chunks.bytes);
    // Chunks of the folds and of the rounds delay each other; the factors were measured in the
    // simulation.
    if (chunks.count > 1) {
        if (f.kind == Kind::allreduce) time += total * f.wire * (f.lonely_fold() ? 0.8 : 0.35);
        if (f.kind == Kind::reduce && f.lonely_fold()) time += 2.5 * chunks.bytes * f.wire;
        bool short_path = f.kind == Kind::reduce && !f.lonely_fold();
        time += total * std::max(0.0, f.sum - f.wire) * (short_path ? 0.4 : 1);
    }
    if (scatters) time += f.lonely_fold() ? 2 * f.o + f.m * f.wire : f.round(f.cut(f.m, 2));
    return time;
}

constexpr Method methods[] = {
    {Kind::allreduce, allreduce, cost},
    {Kind::reduce, reduce, cost},
    {Kind::reduce_scatter, reduce_scatter, cost},
};

} // namespace

constinit const Description algorithms::halving_doubling = {
    .about = "reduce-scatter by halving, then all-gather by doubling",
    .source = "Rabenseifner 2004",
    .methods = methods,
};

} // namespace dtrain::collectives
