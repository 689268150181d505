// One life of a job: its processes are forked, and run one at a time until all have ended.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "world.h"

#include <array>
#include <functional>
#include <string>

namespace dtrain::simulator {

struct Outcome {
    bool good = false;
    std::string text; // what was wrong
    uint64_t trace = 0, steps = 0;
    int64_t lasted = 0;                  // ns of the world's time
    std::array<uint64_t, 64> ended = {}; // calls, by their status
};

// `prepare` sets the world up, and `program` is what its first `processes` run. Each is a host of
// its own.
Outcome live(uint64_t seed, int processes, const std::function<void(World &)> &prepare,
             const std::function<void(int process)> &program);

} // namespace dtrain::simulator
