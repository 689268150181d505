// The record of a collective call by which ranks compare what they called.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace dtrain::wire {

// Numbers travel between processes, so they must never be reused.
enum class CallKind : uint8_t {
    none = 0,
    all_reduce = 1,
    reduce = 2,
    reduce_scatter = 3,
    reduce_scatterv = 4,
    all_gather = 5,
    all_gatherv = 6,
    broadcast = 7,
    gather = 8,
    gatherv = 9,
    scatter = 10,
    scatterv = 11,
    all_to_all = 12,
    all_to_allv = 13,
    barrier = 14,
    split = 15,
    duplicate = 16,
    table_create = 17,
    postscale = 18, // factor for the next call's result; count holds the double's bits
    compressed_all_reduce = 19,
    neighbor_average = 20,
    neighbor_allgather = 21,
    neighbor_alltoall = 22,
    graph_create = 23,
    subset = 24,
    compressor_create = 25,
    gradients_create = 26,
    set_consistency = 27
};

struct CallRecord {
    uint64_t seq = 0;   // number of the call in its group, counted by each rank from 1
    uint64_t count = 0; // elements, or another number on which all ranks must agree
    int32_t root = -1;  // root, or the graph's number; -1: the call has none
    CallKind kind = CallKind::none;
    uint8_t dtype = 0; // DTRAIN_F32, ...; 0: none
    uint8_t op = 0;    // DTRAIN_SUM, ...; 0: none

    bool operator==(const CallRecord &) const = default;
};

} // namespace dtrain::wire
