// Steps and formulas that several algorithms have in common.
// SPDX-License-Identifier: Apache-2.0
//
// Source of the barrier: Hensgen, Finkel, Manber: Two algorithms for barrier synchronization,
// International Journal of Parallel Programming 17 (1988).
#include "collectives/algorithms/shared.h"

#include <algorithm>
#include <bit>

namespace dtrain::collectives {

// In round k a rank reports that it has heard, directly or not, from the 2^k ranks before it. The
// byte carries no data; the copies make it wait for the messages of all earlier rounds.
void dissemination_barrier(Plan &plan) {
    plan.limit_messages(1, 1);
    auto rounds = uint64_t(std::bit_width(uint32_t(plan.size - 1)));
    Extent marks = plan.scratch(1 + rounds), heard = marks.part(0, 1);
    for (uint64_t round = 0; round < rounds; round++) {
        Extent arrived = marks.part(1 + round, 1);
        plan.send((plan.rank + (1 << round)) % plan.size, heard);
        plan.recv((plan.rank - (1 << round) + plan.size) % plan.size, arrived);
        plan.copy(arrived, heard);
    }
}

double dissemination_cost(const Formula &f) { return f.log2_up() * f.hop(1); }

double doubling_blocks_cost(const Formula &f, double blocks, double block, bool tree) {
    if (blocks <= 1) return 0;
    double held = 1, before = 0, time = 0;
    double last = blocks - double(std::bit_ceil(uint32_t(blocks)) >> 1);
    for (; 2 * held < blocks; held *= 2) {
        time += f.round(f.cut(held * block));
        if (held < last) before = time;
    }
    if (tree && last < held) before = doubling_blocks_cost(f, last, block, true);
    Chunks chunks = f.cut(last * block);
    double own = before + f.round(chunks),
           after = chunks.count * std::max(f.o, chunks.bytes * f.wire);
    // The root of a gather may receive it while the largest set is in transit.
    if (f.kind == Kind::gather && own < time) after = std::max(0.0, after - f.o - f.latency);
    return std::max(own, time + after);
}

} // namespace dtrain::collectives
