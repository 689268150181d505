// Plans of the calls that were made before, so that the hot path builds nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/build.h"
#include "engine/plan.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace dtrain::collectives {

class PlanCache {
  public:
    // A plan for the spec, made or found. Ragged calls are made anew each time.
    Status get(const CollectiveSpec &spec, Algorithm algorithm, bool ragged,
               std::shared_ptr<const engine::Plan> &out);

  private:
    struct Entry {
        CollectiveSpec spec;
        Algorithm algorithm;
        std::shared_ptr<const engine::Plan> plan;
        uint64_t used; // when, in calls
    };
    static constexpr size_t most = 64;
    std::vector<Entry> entries_;
    uint64_t calls_ = 0;
};

} // namespace dtrain::collectives
