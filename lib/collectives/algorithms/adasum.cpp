// Adasum: an all-reduce that adds orthogonal vectors and averages parallel ones.
// SPDX-License-Identifier: Apache-2.0
//
// Source: Maleki et al.: Scaling Distributed Training with Adaptive Summation, MLSys 2021 (vector
// halving, distance doubling). After round k groups of 2^(k + 1) neighbors hold their result, each
// member a part of it. The dot products of two groups' vectors are sums over the members' parts.
// The joined group adds them up by recursive doubling: x + y and y + x have the same bits, so all
// members blend with equal factors.
#include "collectives/algorithms/shared.h"
#include "collectives/call/fold.h"
#include "collectives/call/layout.h"

namespace dtrain::collectives {
namespace {

// The part of the vector that a participant holds; `count` is in units of the smallest part.
struct Held {
    int32_t first, count;
};

class Adasum {
  public:
    Adasum(Plan &plan, const Fold &fold)
        : plan_(plan), fold_(fold), bytes_(input_bytes(plan.spec)), held_{0, fold.participants} {}

    void run() {
        Extent other = plan_.scratch(fold_.paired ? bytes_ : largest_half());
        if (fold_.paired) join_mate(other);
        for (int32_t distance = 1; distance < fold_.participants; distance *= 2)
            halve(distance, other);
        for (int32_t distance = fold_.participants / 2; distance > 0; distance /= 2)
            double_up(distance);
    }

  private:
    Extent part(Held held) const {
        auto begin = [&](int32_t i) {
            return part_begin(plan_.spec.count, uint64_t(fold_.participants), uint64_t(i)) *
                   plan_.spec.element_bytes;
        };
        uint64_t first = begin(held.first);
        return plan_.out(first, begin(held.first + held.count) - first);
    }
    uint64_t largest_half() const {
        Held lower{0, fold_.participants / 2}, upper{fold_.participants / 2, lower.count};
        return std::max(part(lower).bytes, part(upper).bytes);
    }

    // Blends in the whole vector of the mate, which does not participate.
    void join_mate(Extent other) {
        Extent sums = plan_.scratch(Plan::sums_bytes), own = plan_.out(0, bytes_);
        plan_.recv(fold_.mate, other);
        plan_.dots(fold_.mate, other, own, sums);
        plan_.blend(fold_.mate, other, own, sums);
    }

    void halve(int32_t distance, Extent other) {
        int32_t half = held_.count / 2, partner = fold_.rank_of(fold_.index ^ distance);
        Held lower{held_.first, half}, upper{held_.first + half, half};
        bool keeps_upper = fold_.index & distance;
        held_ = keeps_upper ? upper : lower;
        Extent own = part(held_), theirs = other.part(0, own.bytes);
        plan_.send(partner, part(keeps_upper ? lower : upper));
        plan_.recv(partner, theirs);
        Extent sums = plan_.scratch(Plan::sums_bytes);
        plan_.dots(partner, theirs, own, sums);
        for (int32_t d = 1; d <= distance; d *= 2) {
            int32_t member = fold_.rank_of(fold_.index ^ d);
            Extent received = plan_.scratch(Plan::sums_bytes);
            plan_.send(member, sums);
            plan_.recv(member, received);
            plan_.add_sums(received, sums);
        }
        plan_.blend(partner, theirs, own, sums);
    }

    void double_up(int32_t distance) {
        int32_t partner = fold_.rank_of(fold_.index ^ distance);
        bool has_upper = fold_.index & distance;
        Held other{held_.first + (has_upper ? -held_.count : held_.count), held_.count};
        plan_.send(partner, part(held_));
        plan_.recv(partner, part(other));
        held_ = {std::min(held_.first, other.first), 2 * held_.count};
    }

    Plan &plan_;
    const Fold &fold_;
    const uint64_t bytes_;
    Held held_;
};

} // namespace

void adasum_allreduce(Plan &plan) {
    uint64_t bytes = input_bytes(plan.spec);
    // Per pair: the vector there and back, and sums in every round.
    constexpr uint64_t transfers = 2 + 32;
    plan.limit_messages(transfers, bytes);
    Fold fold(plan.size, plan.rank);
    Extent result = plan.out(0, bytes);
    if (!fold.keeper) {
        plan.send(fold.mate, plan.in(0, bytes));
        return plan.recv(fold.mate, result);
    }
    plan.copy(plan.in(0, bytes), result);
    Adasum(plan, fold).run();
    if (fold.paired) plan.send(fold.mate, result);
}

} // namespace dtrain::collectives
