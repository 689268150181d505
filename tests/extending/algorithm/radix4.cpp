// Recursive doubling with radix 4: in each round four ranks exchange whole vectors. Takes log4(n)
// latencies and three messages per round; for short vectors on networks that take several messages
// at a time.
// SPDX-License-Identifier: Apache-2.0
//
// Source: Ruefenacht, Bull, Booth: Generalisation of recursive doubling for AllReduce: Now with
// simulation, Parallel Computing 69 (2017).
#include "collectives/algorithms/algorithm.h"

#include <array>

namespace dtrain::collectives {
namespace {

constexpr int32_t radix = 4;

// The largest power of the radix that is not larger than `size`.
int32_t participants_of(int32_t size) {
    int32_t count = 1;
    while (count <= size / radix) count *= radix;
    return count;
}

// `sum` becomes that of four participants, added in their order, so that all four have the same
// bits.
void exchange(Plan &plan, int32_t distance, Extent sum, const std::array<Extent, radix> &slots) {
    const int32_t digit = plan.rank / distance % radix, first = plan.rank - digit * distance;
    auto part = [&](int32_t i) { return i == digit ? sum : slots[size_t(i)]; };
    auto each_partner = [&](auto f) {
        for (int32_t i = 0; i < radix; i++)
            if (i != digit) f(first + i * distance, i);
    };
    each_partner([&](int32_t rank, int32_t) { plan.send(rank, sum); });
    each_partner([&](int32_t rank, int32_t i) { plan.recv(rank, part(i)); });
    for (int32_t i = 1; i < radix; i++) plan.reduce(part(i), part(0));
    plan.copy(part(0), sum);
}

void allreduce(Plan &plan) {
    const uint64_t bytes = input_bytes(plan.spec);
    plan.limit_messages(2, bytes);
    const int32_t participants = participants_of(plan.size);
    const Extent result = plan.out(0, bytes);
    // Up to three ranks leave their vector to a participant, and wait for the result.
    if (plan.rank >= participants) {
        plan.send(plan.rank % participants, plan.in(0, bytes));
        return plan.recv(plan.rank % participants, result);
    }
    std::array<Extent, radix> slots;
    for (Extent &slot : slots) slot = plan.scratch(participants > 1 ? bytes : 0);
    const Extent sum = participants > 1 ? plan.scratch(bytes) : result;
    plan.copy(plan.in(0, bytes), sum);
    for (int32_t rank = plan.rank + participants; rank < plan.size; rank += participants)
        plan.recv_reduce(rank, sum, sum);
    for (int32_t distance = 1; distance < participants; distance *= radix)
        exchange(plan, distance, sum, slots);
    plan.finish(sum);
    plan.copy(sum, result);
    for (int32_t rank = plan.rank + participants; rank < plan.size; rank += participants)
        plan.send(rank, result);
}

constexpr Method methods[] = {{Kind::allreduce, allreduce}};

} // namespace

constinit const Description algorithms::radix4 = {
    .about = "whole vectors among four partners at distance 1, 4, 16, ...",
    .source = "Ruefenacht, Bull, Booth 2017",
    .methods = methods,
};

} // namespace dtrain::collectives
