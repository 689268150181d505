// Each rank sends directly to every rank that needs its data: one latency, n - 1 messages per rank.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/call/layout.h"
#include "collectives/schedule/builders.h"

namespace dtrain::collectives {
namespace {

// The peers of rounds 1 .. n - 1: in each round every rank sends to one rank and receives from one.
int32_t peer_after(const Plan &plan, int32_t round) { return (plan.rank + round) % plan.size; }
int32_t peer_before(const Plan &plan, int32_t round) {
    return (plan.rank - round + plan.size) % plan.size;
}

// dst = the sum, in rank order, of `own` and what all other ranks send to this rank.
void sum_in_rank_order(Plan &plan, Extent own, Extent dst) {
    Extent slots = plan.scratch(own.bytes * uint64_t(plan.size - 1));
    auto slot = [&](int32_t peer) {
        if (peer == 0 && !plan.spec.in_place) return dst;
        return slots.part(own.bytes * uint64_t(peer < plan.rank ? peer : peer - 1), own.bytes);
    };
    for (int32_t round = 1; round < plan.size; round++) {
        int32_t peer = peer_before(plan, round);
        plan.recv(peer, slot(peer));
    }
    // The sum accumulates where rank 0's part lies: in dst, unless this rank's sends may still read
    // it.
    Extent sum = plan.rank == 0 ? dst : slot(0);
    if (plan.rank == 0) plan.copy(own, dst);
    for (int32_t peer = 1; peer < plan.size; peer++)
        plan.reduce(peer == plan.rank ? own : slot(peer), sum);
    plan.finish(sum);
    plan.copy(sum, dst);
}

} // namespace

void direct_allreduce(Plan &plan) {
    uint64_t bytes = input_bytes(plan.spec);
    plan.limit_messages(1, bytes);
    for (int32_t round = 1; round < plan.size; round++)
        plan.send(peer_after(plan, round), plan.in(0, bytes));
    sum_in_rank_order(plan, plan.in(0, bytes), plan.out(0, bytes));
}

void direct_reduce(Plan &plan) {
    uint64_t bytes = input_bytes(plan.spec);
    plan.limit_messages(1, bytes);
    if (plan.rank == plan.spec.root)
        sum_in_rank_order(plan, plan.in(0, bytes), plan.out(0, bytes));
    else
        plan.send(plan.spec.root, plan.in(0, bytes));
}

void direct_reduce_scatter(Plan &plan) {
    Layout blocks(plan.spec);
    plan.limit_messages(1, blocks.largest());
    for (int32_t round = 1; round < plan.size; round++) {
        int32_t peer = peer_after(plan, round);
        plan.send(peer, plan.in(blocks.offset(peer), blocks.bytes(peer)));
    }
    uint64_t bytes = blocks.bytes(plan.rank);
    sum_in_rank_order(plan, plan.in(blocks.offset(plan.rank), bytes), plan.out(0, bytes));
}

void direct_allgather(Plan &plan) {
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

void direct_broadcast(Plan &plan) {
    Extent all = plan.out(0, output_bytes(plan.spec));
    plan.limit_messages(1, all.bytes);
    if (plan.rank != plan.spec.root) return plan.recv(plan.spec.root, all);
    for (int32_t round = 1; round < plan.size; round++) plan.send(peer_after(plan, round), all);
}

void direct_gather(Plan &plan) {
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

void direct_scatter(Plan &plan) {
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

void direct_alltoall(Plan &plan) {
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

void direct_barrier(Plan &plan) {
    plan.limit_messages(1, 1);
    Extent marks = plan.scratch(uint64_t(plan.size)); // one byte per rank, which carries no data
    for (int32_t round = 1; round < plan.size; round++) {
        int32_t from = peer_before(plan, round);
        plan.send(peer_after(plan, round), marks.part(uint64_t(plan.rank), 1));
        plan.recv(from, marks.part(uint64_t(from), 1));
    }
}

} // namespace dtrain::collectives
