// Chunks, streams of chunks, and rounds.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/model/formula.h"

#include "engine/tag.h"

#include <algorithm>
#include <cmath>

namespace dtrain::collectives {

Formula::Formula(Kind the_kind, int32_t the_size, uint64_t bytes, const NetworkModel &model,
                 uint64_t the_chunk_bytes)
    : kind(the_kind), size(the_size), n(the_size), m(double(bytes)),
      chunk_bytes(double(the_chunk_bytes)), o(model.overhead_ns), latency(model.latency_ns),
      wire(model.ns_per_byte), sum(model.reduce_ns_per_byte), copy(model.copy_ns_per_byte),
      ranks_per_core(model.ranks_per_core) {}

Formula::Formula(const Formula &shared, double by)
    : kind(shared.kind), size(shared.size), n(shared.n), m(shared.m),
      chunk_bytes(shared.chunk_bytes), o(shared.o / by), latency(shared.latency),
      wire(shared.wire / by), sum(shared.sum / by), copy(shared.copy / by), ranks_per_core(1) {}

Chunks Formula::cut(double bytes, double transfers) const {
    double most = std::max(1.0, std::floor(engine::max_messages / transfers));
    double count = std::clamp(std::ceil(bytes / chunk_bytes), 1.0, most);
    return {count, bytes / count, std::max(bytes / count, std::min(bytes, chunk_bytes))};
}

double Formula::gap(double bytes, double work) const {
    return std::max(2 * o + bytes * work, bytes * wire);
}

double Formula::rounds(double count, Chunks chunks, double work) const {
    double stream = chunks.count * gap(chunks.bytes, work);
    if (chunks.count > 1) stream += chunks.bytes * work;
    return count * std::max(hop(chunks.largest, work), stream);
}

} // namespace dtrain::collectives
