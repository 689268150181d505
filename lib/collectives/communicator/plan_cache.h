// Plans of the calls that were made before, so that the hot path builds nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/cost/price.h"
#include "collectives/schedule/build.h"
#include "engine/plan.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace dtrain::collectives {

class PlanCache {
  public:
    // `forced`: for all-reduce, in place of the cheapest algorithm on this network.
    void set_choice(const NetworkModel &model, std::optional<Algorithm> forced) {
        model_ = model;
        forced_ = forced;
    }
    // A plan for the spec, made or found. Ragged calls are made anew each time. `wanted`: in place
    // of the choice, unless that is forced.
    Status get(const CollectiveSpec &spec, bool ragged, std::optional<Algorithm> wanted,
               std::shared_ptr<const engine::Plan> &out);

  private:
    struct Entry {
        CollectiveSpec spec;
        std::optional<Algorithm> wanted;
        std::shared_ptr<const engine::Plan> plan;
        uint64_t used; // when, in calls
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
