// The names of kinds, and the checks and buffer sizes of a collective.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/call/collective.h"

#include "collectives/call/layout.h"
#include "collectives/graph/graph.h"

#include <bit>
#include <cinttypes>
#include <numeric>

namespace dtrain::collectives {
namespace {

constexpr const char *kind_names[all_kinds] = {"allreduce",
                                               "reduce",
                                               "reduce_scatter",
                                               "allgather",
                                               "broadcast",
                                               "gather",
                                               "scatter",
                                               "alltoall",
                                               "barrier",
                                               "neighbor_average",
                                               "neighbor_allgather",
                                               "neighbor_alltoall"};

// Limit of one buffer: the sum of two cannot overflow.
constexpr uint64_t max_bytes = uint64_t{1} << 62;

bool whole_vector(Kind kind) {
    return kind == Kind::allreduce || kind == Kind::reduce || kind == Kind::broadcast ||
           kind == Kind::neighbor_average;
}

Status check_blocks(const CollectiveSpec &spec, std::span<const uint64_t> counts,
                    std::span<const uint64_t> displs) {
    size_t n = size_t(spec.size);
    if ((!counts.empty() && counts.size() != n) || (!displs.empty() && displs.size() != n))
        return fail(DTRAIN_ERR_INVALID, "%s: counts or displacements must have one entry per rank",
                    kind_name(spec.kind));
    uint64_t most = max_bytes / spec.element_bytes, total = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t count = counts.empty() ? spec.count : counts[i];
        uint64_t begin = displs.empty() ? total : displs[i];
        if (count > most || begin > most - count || total > most - count)
            return fail(DTRAIN_ERR_LIMIT,
                        "%s: block %zu of %" PRIu64 " elements ends beyond 2^62 bytes",
                        kind_name(spec.kind), i, count);
        total += count;
    }
    return DTRAIN_OK;
}

} // namespace

const char *kind_name(Kind kind) { return kind_names[size_t(kind)]; }

Status validate(const CollectiveSpec &spec) {
    const char *name = kind_name(spec.kind);
    if (spec.size < 1 || spec.rank < 0 || spec.rank >= spec.size)
        return fail(DTRAIN_ERR_INVALID, "%s: rank %d of %d", name, spec.rank, spec.size);
    if (spec.root < 0 || (spec.root >= spec.size && !over_graph(spec.kind)))
        return fail(DTRAIN_ERR_INVALID, "%s: root %d of %d ranks", name, spec.root, spec.size);
    if (!std::has_single_bit(spec.element_bytes) || spec.element_bytes > 8 || !spec.chunk_bytes)
        return fail(DTRAIN_ERR_INVALID, "%s: elements of %u bytes in chunks of %" PRIu64, name,
                    spec.element_bytes, spec.chunk_bytes);
    if (spec.kind == Kind::alltoall && spec.in_place &&
        !(spec.counts.empty() && spec.displs.empty()))
        return fail(DTRAIN_ERR_INVALID, "alltoall in place needs equal counts");
    if (over_graph(spec.kind) != (spec.graph != nullptr) ||
        (spec.graph != nullptr && spec.graph->size() != spec.size))
        return fail(DTRAIN_ERR_INVALID, "%s: the graph is missing or does not have %d ranks", name,
                    spec.size);
    if (spec.in_place && over_graph(spec.kind) && spec.kind != Kind::neighbor_average)
        return fail(DTRAIN_ERR_INVALID, "%s cannot run in place", name);
    if (whole_vector(spec.kind)) {
        if (spec.count > max_bytes / spec.element_bytes)
            return fail(DTRAIN_ERR_LIMIT, "%s: %" PRIu64 " elements are more than 2^62 bytes", name,
                        spec.count);
        return DTRAIN_OK;
    }
    if (Status s = check_blocks(spec, spec.counts, spec.displs); s < 0) return s;
    return check_blocks(spec, spec.recv_counts, spec.recv_displs);
}

uint64_t input_bytes(const CollectiveSpec &spec) {
    switch (spec.kind) {
    case Kind::allreduce:
    case Kind::reduce: return spec.count * spec.element_bytes;
    case Kind::scatter: return spec.rank == spec.root ? Layout(spec).end() : 0;
    case Kind::reduce_scatter:
    case Kind::alltoall: return Layout(spec).end();
    case Kind::allgather:
    case Kind::gather: return Layout(spec).bytes(spec.rank);
    case Kind::neighbor_average:
    case Kind::neighbor_allgather: return spec.count * spec.element_bytes;
    case Kind::neighbor_alltoall:
        return spec.graph->out_of(spec.rank).size() * spec.count * spec.element_bytes;
    case Kind::broadcast:
    case Kind::barrier: break;
    }
    return 0;
}

uint64_t output_bytes(const CollectiveSpec &spec) {
    bool root = spec.rank == spec.root;
    switch (spec.kind) {
    case Kind::allreduce:
    case Kind::neighbor_average:
    case Kind::broadcast: return spec.count * spec.element_bytes;
    case Kind::reduce: return root ? spec.count * spec.element_bytes : 0;
    case Kind::gather: return root ? Layout(spec).end() : 0;
    case Kind::allgather: return Layout(spec).end();
    case Kind::alltoall: return Layout::of_output(spec).end();
    case Kind::reduce_scatter:
    case Kind::scatter: return Layout(spec).bytes(spec.rank);
    case Kind::neighbor_allgather:
    case Kind::neighbor_alltoall:
        return spec.graph->into(spec.rank).size() * spec.count * spec.element_bytes;
    case Kind::barrier: break;
    }
    return 0;
}

uint64_t typical_bytes(const CollectiveSpec &spec) {
    if (spec.counts.empty()) return spec.count * spec.element_bytes;
    uint64_t total = std::accumulate(spec.counts.begin(), spec.counts.end(), uint64_t{0});
    auto n = uint64_t(spec.size);
    return (total / n + (total % n != 0)) * spec.element_bytes;
}

SharedBase in_place_base(const CollectiveSpec &spec) {
    switch (spec.kind) {
    case Kind::allgather:
    case Kind::gather: return {Layout(spec).offset(spec.rank), 0};
    case Kind::reduce_scatter:
    case Kind::scatter: return {0, Layout(spec).offset(spec.rank)};
    default: return {};
    }
}

} // namespace dtrain::collectives
