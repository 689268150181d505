// Each rank sums up one share of the vector, which all others send to it, and sends it to all: the
// fewest bytes possible, two latencies, and 2(n - 1) messages per rank. For few ranks far apart.
// SPDX-License-Identifier: Apache-2.0
//
// Source: Rabenseifner: Optimization of collective reduction operations, ICCS 2004 (reduce-scatter,
// then all-gather; here each of both in one step).
#include "collectives/algorithms/shared.h"
#include "collectives/call/layout.h"
#include "engine/tag.h"

#include <algorithm>
#include <limits>

namespace dtrain::collectives {
namespace {

void allreduce(Plan &plan) {
    const uint64_t n = uint64_t(plan.size), count = plan.spec.count;
    const auto begin = [&](int32_t rank) {
        return part_begin(count, n, uint64_t(rank)) * plan.spec.element_bytes;
    };
    const auto share_bytes = [&](int32_t rank) { return begin(rank + 1) - begin(rank); };
    const auto in = [&](int32_t rank) { return plan.in(begin(rank), share_bytes(rank)); };
    const auto out = [&](int32_t rank) { return plan.out(begin(rank), share_bytes(rank)); };
    const auto peer_after = [&](int32_t round) { return (plan.rank + round) % plan.size; };
    const auto peer_before = [&](int32_t round) {
        return (plan.rank - round + plan.size) % plan.size;
    };
    plan.limit_messages(2, (count / n + 1) * plan.spec.element_bytes);
    for (int32_t round = 1; round < plan.size; round++)
        plan.send(peer_after(round), in(peer_after(round)));
    sum_in_rank_order(plan, in(plan.rank), out(plan.rank));
    for (int32_t round = 1; round < plan.size; round++) {
        plan.send(peer_after(round), out(plan.rank));
        plan.recv(peer_before(round), out(peer_before(round)));
    }
}

// One step: a rank sends to all others and receives from all, while its processor has other work.
// Vectors of few numbers have no share for each rank.
double step(const Formula &f, Chunks chunks, double work) {
    const double messages = (f.n - 1) * chunks.count, wire = chunks.bytes * f.wire,
                 shares = std::clamp(f.m / sizeof(float), 1.0, f.n);
    return std::max({2 * f.o + f.latency + messages * wire, (messages + 1) * f.o + f.latency + wire,
                     (f.n + shares - 2) * chunks.count * f.o + work});
}

// Sums in rank order: those of the last chunk remain when it arrives, and those for which there was
// no time while the others arrived. Where ranks share cores, fewer and larger messages were faster.
double allreduce_cost(const Formula &f) {
    if (f.ranks_per_core > 1) return std::numeric_limits<double>::infinity();
    const Chunks chunks = f.cut(f.m / f.n, 2);
    const double share = f.m / f.n, sums = (f.n - 1) * share * f.sum + share * f.copy,
                 last = sums / chunks.count, time = (chunks.count - 1) * chunks.bytes * f.wire;
    const double first =
        std::max(step(f, chunks, 0) + std::max(last, sums - time), step(f, chunks, sums));
    return first + step(f, chunks, 0);
}

constexpr Method methods[] = {
    {Kind::allreduce, allreduce, allreduce_cost},
};

} // namespace

constinit const Description algorithms::two_shot = {
    .about = "each rank sums up a share of the vector, and sends it to all",
    .source = "Rabenseifner 2004",
    .methods = methods,
    .crossing = Crossing::all_rounds,
};

} // namespace dtrain::collectives
