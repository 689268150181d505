// A schedule prepared for running: what each step unblocks. Immutable, shared by many runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "engine/schedule.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace dtrain::engine {

struct Plan {
    const char *algorithm = ""; // its name; static storage
    Schedule schedule;
    std::vector<uint32_t>
        first_successor; // of step i: [first_successor[i], first_successor[i + 1])
    std::vector<uint32_t> successors;

    static std::shared_ptr<const Plan> make(Schedule &&schedule, const char *algorithm = "");
};

} // namespace dtrain::engine
