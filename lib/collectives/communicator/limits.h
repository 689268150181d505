// The sizes by which a communicator chooses between its ways to run a call.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/call/collective.h"

#include <cstdint>

namespace dtrain::collectives {

struct Limits {
    uint64_t exchange_bytes = 0; // largest all-reduce by window exchange
    uint64_t chunk_bytes = usual_chunk;
    bool allreduce_by_messages = false; // even if there is a window
};

} // namespace dtrain::collectives
