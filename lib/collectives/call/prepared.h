// A call that was checked, and what follows from it: made once, posted any number of times.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/call/call.h"
#include "engine/plan.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace dtrain::collectives {

struct Prepared {
    // schedule: by messages; wide_average: the same with sums in another format.
    enum class Way : uint8_t { exchange, allreduce, transfer, schedule, wide_average };

    Call call;
    std::vector<uint64_t> arrays; // the call's counts and displacements, when it keeps its own
    CollectiveSpec spec;
    cluster::CallRecord record;
    uint64_t result_bytes = 0;
    uint64_t block_bytes = 0, blocks = 0; // of the window's rings
    Way way = Way::schedule;
    std::shared_ptr<const engine::Plan> plan; // known from the first time on
    bool is_valid = false;                    // for the same call again
};

} // namespace dtrain::collectives
