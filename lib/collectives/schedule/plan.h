// Writes one rank's schedule: a builder states the steps in program order, and the plan does the
// rest.
// SPDX-License-Identifier: Apache-2.0
//
// The plan cuts steps into chunks, numbers the messages and derives the dependencies from the
// memory that the steps touch, so that everything that may run concurrently does. Therefore
// builders read as sequential programs, and chunks of consecutive rounds overlap automatically.
//
// A send may complete only when its peer has posted the receive. So a builder must never receive
// into memory that it sends in the same round.
#pragma once
#include "collectives/call/collective.h"
#include "collectives/schedule/hazards.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace dtrain::collectives {

struct Extent {
    engine::Space space = engine::Space::output;
    uint64_t offset = 0, bytes = 0;

    Extent part(uint64_t first, uint64_t length) const { return {space, offset + first, length}; }
};

struct Weighed {
    Extent src;
    double weight;
};

class Plan {
  public:
    // The spec must be valid. `out` is replaced.
    Plan(const CollectiveSpec &spec, engine::Schedule &out);

    // Call before the first step: states that the busiest pair exchanges `transfers` messages, and
    // the largest has `bytes` before it is cut; equal on both sides. Increases the chunk so that
    // message numbers suffice.
    void limit_messages(uint64_t transfers, uint64_t bytes);

    Extent in(uint64_t offset, uint64_t bytes) const {
        return {engine::Space::input, offset, bytes};
    }
    Extent out(uint64_t offset, uint64_t bytes) const {
        return {engine::Space::output, offset, bytes};
    }
    Extent scratch(uint64_t bytes); // new memory, undefined

    // The steps. Nothing is emitted for 0 bytes. Both extents of a step have the same size.
    void send(int32_t peer, Extent src);
    void recv(int32_t peer, Extent dst);
    void recv_reduce(int32_t peer, Extent own, Extent dst); // dst = own op received
    void copy(Extent src, Extent dst);                      // skipped when they are the same memory
    void reduce(Extent src, Extent dst);                    // dst = dst op src
    void finish(Extent sum);                                // AVG: divides the sum
    // For ADASUM: `own` is (a part of) this rank's vector, `other` that of the peer's.
    static constexpr uint64_t sums_bytes = 3 * sizeof(double);
    void dots(int32_t peer, Extent other, Extent own, Extent sums); // also emitted for 0 bytes
    void add_sums(Extent src, Extent dst);
    void blend(int32_t peer, Extent other, Extent own, Extent sums); // own = both blended
    // dst = weighted sum of the terms, in one step of at most a chunk.
    void weigh(std::span<const Weighed> terms, Extent dst);

    // Calls f(first byte, bytes) for each chunk of a transfer.
    template <class F> void each_chunk(uint64_t bytes, F f) const {
        for (uint64_t at = 0; at < bytes; at += chunk_) f(at, std::min(chunk_, bytes - at));
    }
    uint64_t chunk() const { return chunk_; }

    // OK, or UNSUPPORTED if there are more messages per pair than numbers.
    Status status() const { return status_; }

    const CollectiveSpec &spec;
    const int32_t size, rank;

  private:
    struct Located {
        Hazards *memory; // nullptr: no step writes it
        uint64_t begin;
    };
    Located locate(engine::Place place);
    void emit(engine::StepKind kind, int32_t peer, const Extent *src, const Extent *dst);
    void on_sums(engine::StepKind kind, int32_t peer, Extent src, Extent dst, uint64_t sums);
    void add(engine::Step step, bool reads_src, bool reads_dst, bool writes_dst);
    void read(engine::Place src, uint64_t bytes); // adds a read to the step being made

    engine::Schedule &schedule_;
    uint64_t chunk_;
    SharedBase shared_;
    Hazards user_, scratch_;                // the output (in place: with the input); the scratch
    std::vector<uint32_t> sent_, received_; // messages so far, by peer
    Status status_ = DTRAIN_OK;
};

} // namespace dtrain::collectives
