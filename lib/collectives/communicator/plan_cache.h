// Caches the plans of earlier calls, so that the hot path builds none.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/algorithms/build.h"
#include "collectives/cost/price.h"
#include "engine/plan.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace dtrain::collectives {

class PlanCache {
  public:
    // `forced`: the algorithm for all-reduce, in place of the cheapest one on this network.
    void set_choice(const NetworkModel &model, std::optional<Algorithm> forced) {
        model_ = model;
        forced_ = forced;
    }
    // Finds or makes a plan for the spec. Plans of ragged calls are made anew each time. `wanted`:
    // replaces the choice, unless an algorithm is forced.
    Status get(const CollectiveSpec &spec, bool ragged, std::optional<Algorithm> wanted,
               std::shared_ptr<const engine::Plan> &out);

  private:
    struct Entry {
        CollectiveSpec spec;
        std::optional<Algorithm> wanted;
        std::shared_ptr<const engine::Plan> plan;
        uint64_t used; // call number of the last use
    };
    Status make(const CollectiveSpec &spec, std::optional<Algorithm> wanted,
                std::shared_ptr<const engine::Plan> &out) const;

    static constexpr size_t most = 64;
    NetworkModel model_;
    std::optional<Algorithm> forced_;
    std::vector<Entry> entries_;
    uint64_t calls_ = 0;
};

} // namespace dtrain::collectives
