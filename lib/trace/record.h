// The timeline's record of one operation, step or mark: one cache line.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace dtrain::trace {

// Each is one row of tracks in the picture of a rank.
enum class Track : uint8_t {
    operations, // collectives, messages, table requests
    steps,      // of schedules
    marks       // of the program
};
inline constexpr uint32_t track_count = 3;

// Texts have static storage or come from Timeline::intern().
struct Record {
    int64_t begin_ns = 0, end_ns = 0; // CLOCK_MONOTONIC
    const char *name = "";
    const char *way = nullptr; // how: algorithm, path through shared memory, table
    uint64_t bytes = 0;
    uint64_t call = 0;  // number of the call on its communicator; 0: none
    uint32_t group = 0; // the communicator's tag number, equal on its ranks
    int32_t peer = -1;  // rank in the communicator
    int32_t status = 0; // dtrain_status_t
    Track track = Track::operations;
    uint8_t dtype = 0; // DTRAIN_F32..., 0: none
};
static_assert(sizeof(Record) == 64);

} // namespace dtrain::trace
