// A schedule prepared for running: which steps each step unblocks. Shared by many runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "engine/run_memory.h"
#include "engine/schedule.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace dtrain::engine {

struct Plan {
    Plan() = default;
    Plan(const Plan &) = delete;
    Plan &operator=(const Plan &) = delete;
    ~Plan() { delete spare.load(); }
    const char *algorithm = ""; // its name; static storage
    Schedule schedule;
    std::vector<uint32_t>
        first_successor; // of step i: [first_successor[i], first_successor[i + 1])
    std::vector<uint32_t> successors;
    // Memory of the last run, for the next one, so that running again allocates nothing (except the
    // operation of a request).
    mutable std::atomic<RunMemory *> spare{nullptr};

    static std::shared_ptr<const Plan> make(Schedule &&schedule, const char *algorithm = "");
};

} // namespace dtrain::engine
