// One rank's call of a collective, with its buffers.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cluster/control/calls.h"
#include "collectives/call/collective.h"

#include <cstdint>

namespace dtrain::collectives {

struct Call {
    Kind kind = Kind::barrier;
    bool ragged = false; // the v-variant: counts instead of count
    const void *send = nullptr;
    void *recv = nullptr;
    uint64_t count = 0;
    const uint64_t *counts = nullptr, *displs = nullptr;           // displs NULL: packed
    const uint64_t *recv_counts = nullptr, *recv_displs = nullptr; // alltoallv only
    uint32_t dtype = DTRAIN_U8;
    uint32_t op = 0;
    int32_t root = -1; // -1: the kind has none; of the neighbours' kinds the graph's number
    const Graph *graph = nullptr; // of the neighbours' kinds

    bool operator==(const Call &) const = default;
};

// Checks the arguments and makes the spec that builders take. Spans refer to the call's arrays.
Status check_call(const Call &call, int32_t rank, int32_t size, CollectiveSpec &spec);

// What the ranks must agree on. seq is left 0.
cluster::CallRecord record_of(const Call &call, int32_t size);

} // namespace dtrain::collectives
