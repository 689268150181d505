// Describes a collective: its kind, its ranks and its buffers.
// SPDX-License-Identifier: Apache-2.0
//
// Kinds and buffers are those of dtrain.h; the v-variants are the same kinds with counts per rank.
// The blocks of a rank's neighbors are packed, in the order of their ranks.
#pragma once
#include "base/status.h"
#include "engine/schedule.h"

#include <cstdint>
#include <span>

namespace dtrain::collectives {

enum class Kind : uint8_t {
    allreduce,
    reduce,
    reduce_scatter,
    allgather,
    broadcast,
    gather,
    scatter,
    alltoall,
    barrier,
    neighbor_average, // this and the next two run over a graph
    neighbor_allgather,
    neighbor_alltoall
};
inline constexpr int kind_count = 9; // kinds over all ranks, which come first
inline constexpr int all_kinds = 12;

constexpr bool over_graph(Kind kind) { return kind >= Kind::neighbor_average; }

class Topology;

const char *kind_name(Kind kind);

class Graph;

inline constexpr uint64_t usual_chunk = 256 << 10;

// One rank's call. The spans belong to the caller. All ranks agree on everything but rank, in_place
// and, for alltoall, the counts and displacements.
struct CollectiveSpec {
    Kind kind = Kind::barrier;
    bool average = false;  // divide the sum by `size`
    bool adasum = false;   // allreduce: adaptive summation instead of a sum (algorithms/adasum.cpp)
    bool in_place = false; // ignored on a rank that has only one buffer
    int32_t size = 1, rank = 0;
    int32_t root = 0; // reduce, broadcast, gather, scatter: the root's rank; over a graph: the
                      // graph's number, which keeps plans apart after a graph is destroyed
    uint32_t element_bytes = 1; // 1, 2, 4 or 8
    // Number of elements: of the vector (allreduce, reduce, broadcast) or of each rank's block (the
    // others).
    uint64_t count = 0;
    // For blocks of different sizes: `size` entries each, in elements. Empty counts mean `count`
    // each; empty displs mean packed. They describe the buffer that holds all blocks: the input of
    // reduce_scatter, scatter and alltoall, the output of allgather and gather.
    std::span<const uint64_t> counts, displs;
    std::span<const uint64_t> recv_counts,
        recv_displs;                    // output of alltoall; empty: as the input
    uint64_t chunk_bytes = usual_chunk; // size of the pieces of large messages, > 0
    const Topology *topology = nullptr; // equal on all ranks; nullptr: all are equally near
    const Graph *graph = nullptr; // only for kinds over a graph; must outlive the building of plans
};

// Checks the spec without overflow: ERR_INVALID or ERR_LIMIT when it is impossible.
Status validate(const CollectiveSpec &spec);

// For valid specs: the bytes of this rank's buffers, up to the end of the last block; 0 if the rank
// has no such buffer. broadcast has one buffer, the output.
uint64_t input_bytes(const CollectiveSpec &spec);
uint64_t output_bytes(const CollectiveSpec &spec);

// The size by which the cost model works: bytes of the vector, or of an average rank's block.
uint64_t typical_bytes(const CollectiveSpec &spec);

// Byte offsets at which input and output begin in the memory that they share in place.
struct SharedBase {
    uint64_t input = 0, output = 0;
};
SharedBase in_place_base(const CollectiveSpec &spec);

} // namespace dtrain::collectives
