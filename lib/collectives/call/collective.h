// What a collective is: its kind, its ranks, its buffers.
// SPDX-License-Identifier: Apache-2.0
//
// Kinds and buffers are those of dtrain.h; the v-variants are the same kinds with counts per rank.
// Blocks of neighbours are packed, in the order of their ranks.
#pragma once
#include "base/status.h"
#include "engine/schedule.h"

#include <cstdint>
#include <span>
#include <string_view>

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
    neighbor_average, // over a graph, as the next two
    neighbor_allgather,
    neighbor_alltoall
};
inline constexpr int kind_count = 9; // those of all ranks, which come first
inline constexpr int all_kinds = 12;

constexpr bool over_graph(Kind kind) { return kind >= Kind::neighbor_average; }

enum class Algorithm : uint8_t {
    direct,             // everyone sends to everyone it concerns
    ring,               // neighbours only, pipelined; broadcast: a chain
    recursive_doubling, // whole vectors with partners at distance 1, 2, 4, ...
    halving_doubling,   // Rabenseifner: reduce-scatter by halving, then all-gather by doubling
    binomial_tree,
    double_tree,  // two binary trees, each inner rank of one a leaf of the other
    bruck,        // blocks at distance 1, 2, 4, ... for any number of ranks
    hierarchical, // inside each host, then around a ring between hosts, and back; rooted: chains
    hierarchical_tree // by one rank of each host, with recursive doubling between them; rooted:
                      // binomial trees
};
inline constexpr int algorithm_count = 9;

class Topology;

const char *kind_name(Kind kind);
// As in the option "allreduce.algorithm".
const char *algorithm_name(Algorithm algorithm);
bool parse_algorithm(std::string_view name, Algorithm &out);

class Graph;

inline constexpr uint64_t usual_chunk = 256 << 10;

// One rank's call. Spans belong to the caller. All ranks agree on everything but rank, in_place
// and, for alltoall, the counts and displacements.
struct CollectiveSpec {
    Kind kind = Kind::barrier;
    bool average = false;  // divide the sum by `size`
    bool adasum = false;   // allreduce: not a sum, but build_adasum.cpp
    bool in_place = false; // ignored where a rank has only one buffer
    int32_t size = 1, rank = 0;
    int32_t root = 0; // reduce, broadcast, gather, scatter; of the neighbours' kinds the graph's
                      // number, which tells plans apart when a graph is gone
    uint32_t element_bytes = 1; // 1, 2, 4 or 8
    // Elements: of the vector (allreduce, reduce, broadcast) or of each rank's block (the others).
    uint64_t count = 0;
    // Blocks that differ, in elements, `size` entries each. counts: empty means `count` each;
    // displs: empty means packed. They describe the buffer that holds all blocks: the input of
    // reduce_scatter, scatter and alltoall, the output of allgather and gather.
    std::span<const uint64_t> counts, displs;
    std::span<const uint64_t> recv_counts,
        recv_displs;                    // the output of alltoall; empty: as the input
    uint64_t chunk_bytes = usual_chunk; // pieces of large messages, > 0
    const Topology *topology = nullptr; // the same on all ranks; nullptr: all are alike
    const Graph *graph = nullptr;       // of the neighbours' kinds; outlives the building of plans
};

// Overflow-checked: ERR_INVALID or ERR_LIMIT when the spec cannot be.
Status validate(const CollectiveSpec &spec);

// For valid specs: bytes of this rank's buffers, up to the end of the last block; 0 where it has
// none. broadcast has one buffer, the output.
uint64_t input_bytes(const CollectiveSpec &spec);
uint64_t output_bytes(const CollectiveSpec &spec);

// What the cost model counts in: bytes of the vector, or of an average rank's block.
uint64_t typical_bytes(const CollectiveSpec &spec);

// Where input and output begin within the memory that they share in place, in bytes.
struct SharedBase {
    uint64_t input = 0, output = 0;
};
SharedBase in_place_base(const CollectiveSpec &spec);

} // namespace dtrain::collectives
