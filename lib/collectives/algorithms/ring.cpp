// Around the ring: every rank communicates only with its two neighbors. Moves the fewest bytes
// possible and takes n - 1 (all-reduce: 2(n - 1)) latencies; chunks of consecutive rounds overlap.
// SPDX-License-Identifier: Apache-2.0
//
// Source: Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations,
// Journal of Parallel and Distributed Computing 69 (2009).
#include "collectives/algorithms/shared.h"
#include "collectives/call/layout.h"
#include "engine/tag.h"

#include <algorithm>
#include <array>
#include <limits>

namespace dtrain::collectives {
namespace {

int32_t right_of(const Plan &plan) { return (plan.rank + 1) % plan.size; }
int32_t left_of(const Plan &plan) { return (plan.rank - 1 + plan.size) % plan.size; }
// The block that a rank handles when it counts `steps` backwards from its own.
int32_t block_back(const Plan &plan, int32_t steps) {
    return (plan.rank - steps + 2 * plan.size) % plan.size;
}

// The last n - 1 rounds: block(i) of rank i goes around the ring; `first` is the source of this
// rank's own block.
template <class Block> void gather_around(Plan &plan, Extent first, Block block) {
    for (int32_t round = 0; round < plan.size - 1; round++) {
        plan.send(right_of(plan), round == 0 ? first : block(block_back(plan, round)));
        plan.recv(left_of(plan), block(block_back(plan, round + 1)));
    }
}

} // namespace

void ring_allreduce_among(Plan &plan, const Team &team, Extent own, Extent sum) {
    const uint64_t n = uint64_t(team.size()), element = plan.spec.element_bytes;
    const uint64_t count = own.bytes / element;
    const int32_t size = team.size(), left = team.rank((team.index + size - 1) % size),
                  right = team.rank((team.index + 1) % size);
    if (size > 1) plan.limit_messages(2 * (n - 1), (count / n + 1) * element);
    auto back = [&](int32_t steps) { return (team.index - steps + 2 * size) % size; };
    auto block = [&](Extent all, int32_t index) {
        uint64_t begin = part_begin(count, n, uint64_t(index));
        uint64_t end = part_begin(count, n, uint64_t(index) + 1);
        return all.part(begin * element, (end - begin) * element);
    };
    if (size == 1) plan.copy(own, sum);
    for (int32_t round = 0; round < size - 1; round++) {
        plan.send(right, block(round == 0 ? own : sum, back(round + 1)));
        plan.recv_reduce(left, block(own, back(round + 2)), block(sum, back(round + 2)));
    }
    plan.finish(block(sum, team.index));
    for (int32_t round = 0; round < size - 1; round++) {
        plan.send(right, block(sum, back(round)));
        plan.recv(left, block(sum, back(round + 1)));
    }
}

double ring_allreduce_cost(const Formula &f) {
    double steps = f.n - 1;
    Chunks chunks = f.cut(f.m / f.n, 2 * steps);
    return f.rounds(steps, chunks, f.sum) + f.rounds(steps, chunks);
}

namespace {

void allreduce(Plan &plan) {
    uint64_t bytes = input_bytes(plan.spec);
    ring_allreduce_among(plan, Team::everyone(plan), plan.in(0, bytes), plan.out(0, bytes));
}

void reduce_scatter(Plan &plan) {
    Layout blocks(plan.spec);
    plan.limit_messages(uint64_t(plan.size - 1), blocks.largest());
    auto own = [&](int32_t index) { return plan.in(blocks.offset(index), blocks.bytes(index)); };
    // The slots of partial sums alternate: one is sent while the next arrives.
    std::array<Extent, 2> slots;
    if (plan.size > 2) slots = {plan.scratch(blocks.largest()), plan.scratch(blocks.largest())};
    Extent sent = own(block_back(plan, 1));
    for (int32_t round = 0; round < plan.size - 1; round++) {
        int32_t index = block_back(plan, round + 2);
        Extent sum = index == plan.rank ? plan.out(0, blocks.bytes(index))
                                        : slots[size_t(round % 2)].part(0, blocks.bytes(index));
        plan.send(right_of(plan), sent);
        plan.recv_reduce(left_of(plan), own(index), sum);
        sent = sum;
    }
    plan.finish(sent);
}

void allgather(Plan &plan) {
    Layout blocks(plan.spec);
    plan.limit_messages(uint64_t(plan.size - 1), blocks.largest());
    auto block = [&](int32_t rank) { return plan.out(blocks.offset(rank), blocks.bytes(rank)); };
    Extent own = plan.in(0, blocks.bytes(plan.rank));
    gather_around(plan, own, block);
    plan.copy(own, block(plan.rank));
}

void broadcast(Plan &plan) {
    Extent all = plan.out(0, output_bytes(plan.spec));
    plan.limit_messages(1, all.bytes);
    if (plan.rank != plan.spec.root) plan.recv(left_of(plan), all);
    if (right_of(plan) != plan.spec.root) plan.send(right_of(plan), all);
}

// The chain ends at the root.
void reduce(Plan &plan) {
    const uint64_t all = input_bytes(plan.spec);
    const bool is_first = left_of(plan) == plan.spec.root, is_root = plan.rank == plan.spec.root;
    const Extent sums = is_root ? plan.out(0, all) : plan.scratch(is_first ? 0 : all);
    plan.limit_messages(1, all);
    plan.each_chunk(all, [&](uint64_t begin, uint64_t bytes) {
        Extent sum = plan.in(begin, bytes);
        if (!is_first) {
            plan.recv_reduce(left_of(plan), sum, sums.part(begin, bytes));
            sum = sums.part(begin, bytes);
        }
        if (is_root)
            plan.finish(sum);
        else
            plan.send(right_of(plan), sum);
    });
}

double reduce_scatter_cost(const Formula &f) {
    return f.rounds(f.n - 1, f.cut(f.m, f.n - 1), f.sum);
}
double allgather_cost(const Formula &f) { return f.rounds(f.n - 1, f.cut(f.m, f.n - 1)); }
double broadcast_cost(const Formula &f) {
    Chunks chunks = f.cut(f.m);
    return (f.n - 1) * f.hop(chunks.bytes) + (chunks.count - 1) * f.gap(chunks.bytes);
}

// Where sums are slower than the link, chunks that have come wait to be summed, and a sum that is
// to be sent waits behind them. The size of the lag was measured in the simulation. Where ranks
// share cores, each chunk would have to wait for the turn of each rank.
double reduce_cost(const Formula &f) {
    constexpr double lag = 1.3, most_lagging = 30; // ranks: with more of them it grows no further
    Chunks chunks = f.cut(f.m);
    const double more = chunks.count - 1, work = 2 * f.o + chunks.bytes * f.sum,
                 coming = std::max(f.o, chunks.bytes * f.wire);
    if (f.ranks_per_core > 1) return std::numeric_limits<double>::infinity();
    return (f.n - 1) * f.hop(chunks.bytes, f.sum) + more * f.gap(chunks.bytes, f.sum) +
           lag * std::min(f.n - 2, most_lagging) * more * std::max(work - coming, 0.0);
}

constexpr Method methods[] = {
    {Kind::allreduce, allreduce, ring_allreduce_cost, engine::max_messages / 2 + 1},
    {Kind::reduce_scatter, reduce_scatter, reduce_scatter_cost, engine::max_messages + 1},
    {Kind::allgather, allgather, allgather_cost, engine::max_messages + 1},
    {Kind::broadcast, broadcast, broadcast_cost},
    {Kind::reduce, reduce, reduce_cost},
};

} // namespace

constinit const Description algorithms::ring = {
    .about = "messages between neighbors only, pipelined; with a root: a chain",
    .source = "Patarasuk, Yuan 2009",
    .methods = methods,
    .crossing = Crossing::one_rank,
};

} // namespace dtrain::collectives
