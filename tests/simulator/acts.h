// What ranks do in a step, where all of them do the same.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "more_calls.h"

#include <span>

namespace dtrain::simulator {

// The same on all ranks.
struct Drawn {
    size_t count;    // of elements
    int other;       // a rank: a root, a chief, or one that does something else
    uint64_t random; // for whatever else an act chooses
    int step;        // a number for the names of tables
};

struct Act {
    // tables: a communicator that may have some; job: one whose ranks are those of the job.
    enum class Needs : uint8_t { nothing, tables, job };
    const char *name;
    Needs needs;
    bool (*run)(const Here &here, const Drawn &drawn); // whether all went well
};

std::span<const Act> all_acts();

} // namespace dtrain::simulator
