// Some of the ranks, in an order, that run a part of a schedule among themselves.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/schedule/plan.h"

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace dtrain::collectives {

class Team {
  public:
    // The plan's rank must be one of them.
    Team(const Plan &plan, std::vector<int32_t> ranks) : ranks_(std::move(ranks)) {
        while (ranks_[size_t(index)] != plan.rank) index++;
    }
    static Team everyone(const Plan &plan) {
        std::vector<int32_t> ranks(static_cast<size_t>(plan.size));
        std::iota(ranks.begin(), ranks.end(), 0);
        return {plan, std::move(ranks)};
    }

    int32_t size() const { return int32_t(ranks_.size()); }
    int32_t rank(int32_t i) const { return ranks_[size_t(i)]; }
    const std::vector<int32_t> &ranks() const { return ranks_; }
    int32_t index = 0; // of the plan's rank

  private:
    std::vector<int32_t> ranks_;
};

} // namespace dtrain::collectives
