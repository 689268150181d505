// The building blocks of the closed formulas that predict what an algorithm costs on a
// NetworkModel.
// SPDX-License-Identifier: Apache-2.0
//
// A transfer of m bytes consists of k chunks of s = m / k. One chunk needs hop(s) from the sender's
// processor to the receiver's. The next one follows when the busiest resource is free again, after
// the gap. Rounds that overlap chunk by chunk therefore cost max(hop, k * gap) each.
#pragma once
#include "collectives/call/collective.h"
#include "collectives/model/network_model.h"

#include <bit>
#include <cstdint>

namespace dtrain::collectives {

struct Chunks {
    double count, bytes; // of each chunk, on average
    double largest;
};

// One call on one network. Times are in ns.
class Formula {
  public:
    // bytes: of the vector (allreduce, reduce, broadcast) or of each rank's block; not 0 but for a
    // barrier. size > 1.
    Formula(Kind kind, int32_t size, uint64_t bytes, const NetworkModel &model,
            uint64_t chunk_bytes);

    // `transfers`: as in Plan::limit_messages().
    Chunks cut(double bytes, double transfers = 1) const;
    double hop(double bytes, double work = 0) const {
        return 2 * o + latency + bytes * (wire + work);
    }
    // Time between two chunks of a stream that a rank receives, works on and passes on.
    double gap(double bytes, double work = 0) const;
    // Where few of the ranks that share a core work at the same time: the longest path with a core
    // to itself, which waits for the work of the core for its other ranks.
    template <class Path> double path_and_work(const Path &path, double work) const {
        return path(Formula(*this, ranks_per_core)) + work * (1 - 1 / ranks_per_core);
    }
    // The work for a rank, as it is on average, if vectors go from all ranks to one, or back.
    double to_one(double vectors_summed) const {
        return (n - 1) / n * (2 * o + m * wire + vectors_summed * m * sum);
    }
    // Rounds in which every rank passes on what it received in the round before. A chunk that is
    // ready to be sent waits for the sum of another.
    double rounds(double count, Chunks chunks, double work = 0) const;
    // One round that does not overlap with others.
    double round(Chunks chunks, double work = 0) const {
        return hop(chunks.bytes, work) + (chunks.count - 1) * gap(chunks.bytes, work);
    }

    int32_t log2_up() const { return int32_t(std::bit_width(uint32_t(size - 1))); }
    int32_t log2_down() const { return int32_t(std::bit_width(uint32_t(size))) - 1; }
    // As in Fold: some ranks are paired; only two are.
    bool folded() const { return !std::has_single_bit(uint32_t(size)); }
    bool lonely_fold() const { return size == int32_t(std::bit_floor(uint32_t(size))) + 1; }

    const Kind kind;
    const int32_t size;
    const double n, m; // ranks and bytes
    const double chunk_bytes;
    const double o, latency;      // overhead and latency of a message
    const double wire, sum, copy; // per byte
    const double ranks_per_core;

  private:
    Formula(const Formula &shared, double by); // a core to itself: all of its work by that divided
};

} // namespace dtrain::collectives
