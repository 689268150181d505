// Recursive doubling: exchanges whole vectors (or all blocks so far) with partners at distance 1,
// 2, 4, ... Takes log2(n) latencies; for short vectors.
// SPDX-License-Identifier: Apache-2.0
//
// Source: Thakur, Rabenseifner, Gropp: Optimization of collective communication operations in
// MPICH, International Journal of High Performance Computing Applications 19 (2005).
#include "collectives/algorithms/shared.h"
#include "collectives/call/fold.h"
#include "collectives/call/layout.h"

#include <array>
#include <bit>

namespace dtrain::collectives {
namespace {

// Sums alternate between two slots of scratch, because the partner reads one while the next is
// computed; the last sum goes to the output.
class Sums {
  public:
    Sums(Plan &plan, Extent own, Extent sum, int32_t additions)
        : plan_(plan), current_(own), out_(sum), left_(additions) {
        // In place, the only sum must not overwrite the data that is being sent.
        bool in_place = own.space == sum.space || plan.spec.in_place;
        aside_ = additions == 1 && in_place;
        int32_t slots = aside_ ? 1 : std::min(additions - 1, 2);
        for (int32_t i = 0; i < slots; i++) slots_[size_t(i)] = plan.scratch(own.bytes);
    }
    Extent current() const { return current_; }
    void add_from(int32_t peer) {
        left_--;
        Extent next = aside_ ? slots_[0] : left_ == 0 ? out_ : slots_[size_t((left_ - 1) % 2)];
        plan_.recv_reduce(peer, current_, next);
        current_ = next;
    }

  private:
    Plan &plan_;
    Extent current_, out_;
    std::array<Extent, 2> slots_;
    int32_t left_;
    bool aside_;
};

} // namespace

void doubling_allreduce_among(Plan &plan, const Team &team, Extent own, Extent sum) {
    plan.limit_messages(2, own.bytes);
    Fold fold(team.size(), team.index);
    if (!fold.keeper) {
        plan.send(team.rank(fold.mate), own);
        return plan.recv(team.rank(fold.mate), sum);
    }
    int32_t rounds = std::countr_zero(uint32_t(fold.participants));
    Sums sums(plan, own, sum, rounds + fold.paired);
    if (fold.paired) sums.add_from(team.rank(fold.mate));
    for (int32_t round = 0; round < rounds; round++) {
        int32_t partner = team.rank(fold.rank_of(fold.index ^ (1 << round)));
        plan.send(partner, sums.current());
        sums.add_from(partner);
    }
    plan.finish(sums.current());
    plan.copy(sums.current(), sum);
    if (fold.paired) plan.send(team.rank(fold.mate), sum);
}

double doubling_allreduce_cost(const Formula &f) {
    Chunks chunks = f.cut(f.m, 2);
    if (!f.folded()) return f.rounds(f.log2_down(), chunks, f.sum);
    // A rank that folds receives once more. Its mate gets the result a hop later, unless it is the
    // only mate.
    return f.rounds(f.log2_down() + 1, chunks, f.sum) +
           (f.lonely_fold() ? 2 * f.o : f.hop(chunks.bytes));
}

namespace {

void allreduce(Plan &plan) {
    uint64_t bytes = input_bytes(plan.spec);
    doubling_allreduce_among(plan, Team::everyone(plan), plan.in(0, bytes), plan.out(0, bytes));
}

// For a power of two ranks.
void allgather(Plan &plan) {
    Layout blocks(plan.spec);
    plan.limit_messages(blocks.packed() ? 1 : uint64_t(plan.size), blocks.end());
    plan.copy(plan.in(0, blocks.bytes(plan.rank)),
              plan.out(blocks.offset(plan.rank), blocks.bytes(plan.rank)));
    for (int32_t held = 1; held < plan.size; held *= 2) {
        int32_t partner = plan.rank ^ held, mine = plan.rank & ~(held - 1);
        blocks.each_run(mine, held, [&](uint64_t begin, uint64_t bytes) {
            plan.send(partner, plan.out(begin, bytes));
        });
        blocks.each_run(mine ^ held, held, [&](uint64_t begin, uint64_t bytes) {
            plan.recv(partner, plan.out(begin, bytes));
        });
    }
}

double allgather_cost(const Formula &f) {
    return doubling_blocks_cost(f, f.n, f.m, false) + f.m * f.copy;
}

constexpr Method methods[] = {
    {Kind::allreduce, allreduce, doubling_allreduce_cost},
    {.kind = Kind::allgather, .build = allgather, .cost = allgather_cost, .powers_of_two = true},
    {Kind::barrier, dissemination_barrier, dissemination_cost},
};

} // namespace

constinit const Description algorithms::recursive_doubling = {
    .about = "whole vectors with partners at distance 1, 2, 4, ...",
    .source = "Thakur, Rabenseifner, Gropp 2005",
    .methods = methods,
};

} // namespace dtrain::collectives
