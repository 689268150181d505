// A checked call and everything derived from it: prepared once, posted any number of times.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/call/call.h"
#include "engine/plan.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace dtrain::collectives {

struct Prepared {
    // The way the call takes. The first three use the shared-memory window, schedule uses messages;
    // wide_average is schedule with sums in another format.
    enum class Way : uint8_t { exchange, allreduce, transfer, schedule, wide_average };

    Call call;
    std::vector<uint64_t> arrays; // copies of counts and displacements, if it must keep them
    CollectiveSpec spec;
    cluster::CallRecord record;
    uint64_t result_bytes = 0;
    uint64_t block_bytes = 0, blocks = 0; // size and number of its blocks in the window's rings
    Way way = Way::schedule;
    std::shared_ptr<const engine::Plan> plan; // set when it was first posted
    bool is_valid = false;                    // valid for another call with equal arguments
};

} // namespace dtrain::collectives
