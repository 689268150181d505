// Bruck's algorithms, for any number of ranks: in round k each rank sends to a rank at distance
// 2^k. They take ceil(log2(n)) latencies; for short blocks.
// SPDX-License-Identifier: Apache-2.0
//
// Source: Bruck, Ho, Kipnis, Upfal, Weathersby: Efficient algorithms for all-to-all communications
// in multiport message-passing systems, IEEE Transactions on Parallel and Distributed Systems 8
// (1997).
#include "collectives/algorithms/shared.h"
#include "collectives/call/layout.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

namespace dtrain::collectives {
namespace {

int32_t after(const Plan &plan, int32_t distance) { return (plan.rank + distance) % plan.size; }
int32_t before(const Plan &plan, int32_t distance) {
    return (plan.rank - distance + plan.size) % plan.size;
}

// Collects all ranks' blocks in scratch, packed in the order rank, rank + 1, ... `begins` gets the
// offset of each block, and the end.
Extent gather_rotated(Plan &plan, const Layout &blocks, std::vector<uint64_t> &begins) {
    begins.assign(1, 0);
    for (int32_t i = 0; i < plan.size; i++)
        begins.push_back(begins.back() + blocks.bytes(after(plan, i)));
    Extent all = plan.scratch(begins.back());
    plan.copy(plan.in(0, begins[1]), all.part(0, begins[1]));
    for (int32_t held = 1; held < plan.size; held *= 2) {
        auto more = size_t(std::min(held, plan.size - held));
        plan.send(before(plan, held), all.part(0, begins[more]));
        uint64_t begin = begins[size_t(held)];
        plan.recv(after(plan, held), all.part(begin, begins[size_t(held) + more] - begin));
    }
    return all;
}

void allgather(Plan &plan) {
    Layout blocks(plan.spec);
    std::vector<uint64_t> begins;
    uint64_t total = 0;
    for (int32_t i = 0; i < plan.size; i++) total += blocks.bytes(i);
    plan.limit_messages(1, total);
    Extent all = gather_rotated(plan, blocks, begins);
    uint64_t at = 0;
    blocks.each_run(plan.rank, plan.size, [&](uint64_t begin, uint64_t bytes) {
        plan.copy(all.part(at, bytes), plan.out(begin, bytes));
        at += bytes;
    });
}

// Gathers everything on every rank, then sums in rank order.
void allreduce(Plan &plan) {
    uint64_t bytes = input_bytes(plan.spec);
    plan.limit_messages(1, bytes * uint64_t(plan.size));
    CollectiveSpec gather = plan.spec;
    gather.kind = Kind::allgather;
    std::vector<uint64_t> begins;
    Extent all = gather_rotated(plan, Layout(gather), begins);
    auto part_of = [&](int32_t rank) {
        return all.part(begins[size_t((rank - plan.rank + plan.size) % plan.size)], bytes);
    };
    Extent sum = part_of(0);
    for (int32_t rank = 1; rank < plan.size; rank++) plan.reduce(part_of(rank), sum);
    plan.finish(sum);
    plan.copy(sum, plan.out(0, bytes));
}

// For equal blocks. Block i of the rotated buffer still has to travel the distance i.
void alltoall(Plan &plan) {
    uint64_t block = plan.spec.count * plan.spec.element_bytes, n = uint64_t(plan.size);
    plan.limit_messages(1, block * (n / 2 + 1));
    Extent all = plan.scratch(block * n), packed = plan.scratch(block * n),
           arrived = plan.scratch(block * n);
    uint64_t head = uint64_t(plan.size - plan.rank) * block; // from this rank's block to the end
    plan.copy(plan.in(block * n - head, head), all.part(0, head));
    plan.copy(plan.in(0, block * n - head), all.part(head, block * n - head));
    for (int32_t distance = 1; distance < plan.size; distance *= 2) {
        // Blocks whose number has this bit set lie in runs of `distance`.
        auto each_run = [&](auto f) {
            uint64_t at = 0;
            for (auto i = uint64_t(distance); i < n; i += 2 * uint64_t(distance)) {
                uint64_t bytes = std::min(uint64_t(distance), n - i) * block;
                f(all.part(i * block, bytes), at);
                at += bytes;
            }
            return at;
        };
        uint64_t bytes =
            each_run([&](Extent run, uint64_t at) { plan.copy(run, packed.part(at, run.bytes)); });
        plan.send(after(plan, distance), packed.part(0, bytes));
        plan.recv(before(plan, distance), arrived.part(0, bytes));
        each_run([&](Extent run, uint64_t at) { plan.copy(arrived.part(at, run.bytes), run); });
    }
    for (int32_t i = 0; i < plan.size; i++)
        plan.copy(all.part(uint64_t(i) * block, block),
                  plan.out(uint64_t(before(plan, i)) * block, block));
}

double gather_cost(const Formula &f) {
    return f.m * f.copy + doubling_blocks_cost(f, f.n, f.m, false);
}
double allgather_cost(const Formula &f) { return gather_cost(f) + f.n * f.m * f.copy; }
double allreduce_cost(const Formula &f) {
    return gather_cost(f) + (f.n - 1) * f.m * f.sum + f.m * f.copy;
}

double alltoall_cost(const Formula &f) {
    double time = 2 * f.n * f.m * f.copy;
    for (double distance = 1; distance < f.n; distance *= 2) {
        double whole = std::floor(f.n / (2 * distance)) * distance;
        double blocks = whole + std::max(0.0, std::fmod(f.n, 2 * distance) - distance);
        time += f.round(f.cut(blocks * f.m)) + 2 * blocks * f.m * f.copy;
    }
    // The last set may not have to wait for the round before.
    double held = std::bit_ceil(uint32_t(f.size)) >> 1;
    return f.folded() && f.n - held <= held / 2 ? time - f.latency - f.o : time;
}

constexpr Method methods[] = {
    {Kind::allreduce, allreduce, allreduce_cost},
    {Kind::allgather, allgather, allgather_cost},
    {.kind = Kind::alltoall, .build = alltoall, .cost = alltoall_cost, .any_counts = false},
    {Kind::barrier, dissemination_barrier, dissemination_cost},
};

} // namespace

constinit const Description algorithms::bruck = {
    .about = "blocks go to the rank at distance 1, 2, 4, ...; any number of ranks",
    .source = "Bruck et al. 1997",
    .methods = methods,
    .crossing = Crossing::all_rounds,
};

} // namespace dtrain::collectives
