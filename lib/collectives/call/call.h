// One rank's call of a collective: its arguments and buffers.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cluster/control/calls.h"
#include "collectives/call/collective.h"

#include <cstdint>

namespace dtrain::collectives {

struct Call {
    Kind kind = Kind::barrier;
    bool ragged = false; // the v-variant: has counts instead of count
    const void *send = nullptr;
    void *recv = nullptr;
    uint64_t count = 0;
    const uint64_t *counts = nullptr, *displs = nullptr;           // displs NULL: blocks are packed
    const uint64_t *recv_counts = nullptr, *recv_displs = nullptr; // alltoallv only
    uint32_t dtype = DTRAIN_U8;
    uint32_t op = 0;
    int32_t root = -1;            // -1: the kind has no root; over a graph: the graph's number
    const Graph *graph = nullptr; // only for kinds over a graph

    bool operator==(const Call &) const = default;
};

// Checks the arguments and fills in the spec that builders take. The spec's spans refer to the
// call's arrays.
Status check_call(const Call &call, int32_t rank, int32_t size, CollectiveSpec &spec);

// The parts of the call on which the ranks must agree. seq stays 0.
cluster::CallRecord record_of(const Call &call, int32_t size);

} // namespace dtrain::collectives
