// Each rank sends directly to every rank that needs its data: one latency, n - 1 messages per rank.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/algorithms/shared.h"
#include "collectives/call/layout.h"

#include <algorithm>

namespace dtrain::collectives {
namespace {

// The peers of rounds 1 .. n - 1: in each round every rank sends to one rank and receives from one.
int32_t peer_after(const Plan &plan, int32_t round) { return (plan.rank + round) % plan.size; }
int32_t peer_before(const Plan &plan, int32_t round) {
    return (plan.rank - round + plan.size) % plan.size;
}

} // namespace

void sum_in_rank_order(Plan &plan, Extent own, Extent dst) {
    if (plan.size == 1) return plan.copy(own, dst);
    // In place, dst is what this rank's sends may still read.
    const bool may_write = !plan.spec.in_place || plan.spec.kind == Kind::reduce;
    const bool adds_first = plan.rank == 0 && may_write;
    // What comes from the first peer needs no slot, but goes to dst.
    const int32_t first = adds_first || (plan.rank != 0 && !plan.spec.in_place) ? 1 : 0;
    Extent slots = plan.scratch(own.bytes * uint64_t(plan.size - 1 - first));
    auto slot = [&](int32_t peer) {
        const int32_t index = (peer < plan.rank ? peer : peer - 1) - first;
        return index < 0 ? dst : slots.part(own.bytes * uint64_t(index), own.bytes);
    };
    for (int32_t round = 1; round < plan.size; round++) {
        int32_t peer = peer_before(plan, round);
        if (adds_first && peer == 1)
            plan.recv_reduce(peer, own, dst);
        else
            plan.recv(peer, slot(peer));
    }
    // The sum accumulates where rank 0's part lies.
    Extent sum = plan.rank == 0 ? dst : slot(0);
    for (int32_t peer = adds_first ? 2 : 1; peer < plan.size; peer++)
        plan.reduce(peer == plan.rank ? own : slot(peer), sum);
    plan.finish(sum);
    plan.copy(sum, dst);
}

namespace {

void allreduce(Plan &plan) {
    uint64_t bytes = input_bytes(plan.spec);
    plan.limit_messages(1, bytes);
    for (int32_t round = 1; round < plan.size; round++)
        plan.send(peer_after(plan, round), plan.in(0, bytes));
    sum_in_rank_order(plan, plan.in(0, bytes), plan.out(0, bytes));
}

void reduce(Plan &plan) {
    uint64_t bytes = input_bytes(plan.spec);
    plan.limit_messages(1, bytes);
    if (plan.rank == plan.spec.root)
        sum_in_rank_order(plan, plan.in(0, bytes), plan.out(0, bytes));
    else
        plan.send(plan.spec.root, plan.in(0, bytes));
}

void reduce_scatter(Plan &plan) {
    Layout blocks(plan.spec);
    plan.limit_messages(1, blocks.largest());
    for (int32_t round = 1; round < plan.size; round++) {
        int32_t peer = peer_after(plan, round);
        plan.send(peer, plan.in(blocks.offset(peer), blocks.bytes(peer)));
    }
    uint64_t bytes = blocks.bytes(plan.rank);
    sum_in_rank_order(plan, plan.in(blocks.offset(plan.rank), bytes), plan.out(0, bytes));
}

void allgather(Plan &plan) {
    Layout blocks(plan.spec);
    plan.limit_messages(1, blocks.largest());
    auto block = [&](int32_t rank) { return plan.out(blocks.offset(rank), blocks.bytes(rank)); };
    Extent own = plan.in(0, blocks.bytes(plan.rank));
    for (int32_t round = 1; round < plan.size; round++) {
        plan.send(peer_after(plan, round), own);
        plan.recv(peer_before(plan, round), block(peer_before(plan, round)));
    }
    plan.copy(own, block(plan.rank));
}

void broadcast(Plan &plan) {
    Extent all = plan.out(0, output_bytes(plan.spec));
    plan.limit_messages(1, all.bytes);
    if (plan.rank != plan.spec.root) return plan.recv(plan.spec.root, all);
    for (int32_t round = 1; round < plan.size; round++) plan.send(peer_after(plan, round), all);
}

void gather(Plan &plan) {
    Layout blocks(plan.spec);
    plan.limit_messages(1, blocks.largest());
    Extent own = plan.in(0, blocks.bytes(plan.rank));
    if (plan.rank != plan.spec.root) return plan.send(plan.spec.root, own);
    for (int32_t round = 1; round < plan.size; round++) {
        int32_t peer = peer_after(plan, round);
        plan.recv(peer, plan.out(blocks.offset(peer), blocks.bytes(peer)));
    }
    plan.copy(own, plan.out(blocks.offset(plan.rank), own.bytes));
}

void scatter(Plan &plan) {
    Layout blocks(plan.spec);
    plan.limit_messages(1, blocks.largest());
    Extent own = plan.out(0, blocks.bytes(plan.rank));
    if (plan.rank != plan.spec.root) return plan.recv(plan.spec.root, own);
    for (int32_t round = 1; round < plan.size; round++) {
        int32_t peer = peer_after(plan, round);
        plan.send(peer, plan.in(blocks.offset(peer), blocks.bytes(peer)));
    }
    plan.copy(plan.in(blocks.offset(plan.rank), own.bytes), own);
}

void alltoall(Plan &plan) {
    Layout sent(plan.spec), received = Layout::of_output(plan.spec);
    // In place, the outgoing blocks are copied first, because a rank cannot know when they have
    // been sent.
    Extent source = plan.in(0, sent.end());
    if (plan.spec.in_place) {
        source = plan.scratch(sent.end());
        plan.copy(plan.in(0, source.bytes), source);
    }
    for (int32_t round = 1; round < plan.size; round++) {
        int32_t to = peer_after(plan, round), from = peer_before(plan, round);
        plan.limit_messages(1, sent.bytes(to));
        plan.send(to, source.part(sent.offset(to), sent.bytes(to)));
        plan.limit_messages(1, received.bytes(from));
        plan.recv(from, plan.out(received.offset(from), received.bytes(from)));
    }
    plan.copy(plan.in(sent.offset(plan.rank), sent.bytes(plan.rank)),
              plan.out(received.offset(plan.rank), sent.bytes(plan.rank)));
}

void barrier(Plan &plan) {
    plan.limit_messages(1, 1);
    Extent marks = plan.scratch(uint64_t(plan.size)); // one byte per rank, which carries no data
    for (int32_t round = 1; round < plan.size; round++) {
        int32_t from = peer_before(plan, round);
        plan.send(peer_after(plan, round), marks.part(uint64_t(plan.rank), 1));
        plan.recv(from, marks.part(uint64_t(from), 1));
    }
}

// A rank sends to, receives from, or does both with all others, while its processor has other work.
double exchange(const Formula &f, bool sends, bool receives, double work = 0) {
    Chunks chunks = f.cut(f.kind == Kind::barrier ? 1 : f.m);
    double messages = (f.n - 1) * chunks.count, wire = chunks.bytes * f.wire;
    double links = 2 * f.o + f.latency + messages * wire;
    double last_out = sends * messages * f.o + wire + f.latency + f.o;
    double processor = messages * f.o * (sends + receives) + work;
    if (!sends) processor += f.o + f.latency;
    return std::max({links, last_out, processor});
}

// The sums in rank order that remain when the last chunk arrives: at least `last` sums of it, and
// those that did not fit into the time in which the last `overlapped` chunks arrived.
double sums_at_end(const Formula &f, double last, double overlapped) {
    Chunks chunks = f.cut(f.m);
    return std::max(last * chunks.bytes * f.sum,
                    (f.n - 1) * f.m * f.sum - overlapped * chunks.bytes * f.wire);
}

double copied(const Formula &f) { return f.m * f.copy; }
double summed(const Formula &f) { return (f.n - 1) * f.m * f.sum + copied(f); }

// All-reduce and reduce-scatter.
double sums_cost(const Formula &f) {
    return std::max(exchange(f, true, true) + sums_at_end(f, f.n - 1, f.cut(f.m).count - 1),
                    exchange(f, true, true, summed(f)));
}
double reduce_path(const Formula &f) {
    return std::max(exchange(f, false, true) + sums_at_end(f, 1, (f.n - 1) * f.cut(f.m).count - 1),
                    exchange(f, false, true, summed(f)));
}
double reduce_cost(const Formula &f) { return f.path_and_work(reduce_path, f.to_one(1)); }
// All-gather and all-to-all.
double blocks_cost(const Formula &f) { return exchange(f, true, true, copied(f)); }
double barrier_cost(const Formula &f) { return exchange(f, true, true); }
double broadcast_path(const Formula &f) { return exchange(f, true, false); }
double broadcast_cost(const Formula &f) { return f.path_and_work(broadcast_path, f.to_one(0)); }
double scatter_cost(const Formula &f) { return exchange(f, true, false, copied(f)); }
double gather_cost(const Formula &f) { return exchange(f, false, true, copied(f)); }
double only_one(const Formula &) { return 0; } // there is no other algorithm to compare with

constexpr Method methods[] = {
    {Kind::allreduce, allreduce, sums_cost},
    {Kind::reduce, reduce, reduce_cost},
    {Kind::reduce_scatter, reduce_scatter, sums_cost},
    {Kind::allgather, allgather, blocks_cost},
    {Kind::broadcast, broadcast, broadcast_cost},
    {Kind::gather, gather, gather_cost},
    {Kind::scatter, scatter, scatter_cost},
    {Kind::alltoall, alltoall, blocks_cost},
    {Kind::barrier, barrier, barrier_cost},
    {Kind::neighbor_average, neighbor_average, only_one},
    {Kind::neighbor_allgather, neighbor_allgather, only_one},
    {Kind::neighbor_alltoall, neighbor_alltoall, only_one},
};

} // namespace

constinit const Description algorithms::direct = {
    .about = "each rank sends directly to every rank that needs its data",
    .source = "",
    .methods = methods,
    .crossing = Crossing::all_rounds,
};

} // namespace dtrain::collectives
