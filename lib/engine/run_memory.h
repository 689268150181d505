// The state that a run of a schedule keeps for its steps. The plan keeps it from run to run.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "engine/operation.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace dtrain::engine {

class ScheduleRun;

struct StepRun : Completion {
    ScheduleRun *run = nullptr;
    void *staging = nullptr;
    int64_t begun_ns = 0;   // if the timeline is on
    uint32_t waits_for = 0; // number of steps
    bool pending = false;   // in a transport
    bool lost = false;      // with its connection
    bool is_done = false;
};

struct RunMemory {
    std::vector<StepRun> steps;
    std::vector<uint32_t> ready; // a heap: lowest index first
    std::vector<uint32_t> later; // taken from `ready`, but not issuable now
    // Sends and receives that wait for earlier ones (precedence.h); heaps as `ready`.
    std::vector<uint32_t> held[2];
    std::unique_ptr<uint8_t[]> scratch;
    std::vector<const void *> sources; // of the terms of a weighted sum
    std::vector<double> weights;
};

} // namespace dtrain::engine
