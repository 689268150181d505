// A server's part of one table: the values, the rule's state, and what waits to be applied.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/aggregate.h"
#include "ps/buffer.h"
#include "ps/consistency.h"
#include "ps/partition.h"
#include "ps/protocol.h"
#include "ps/step_counts.h"
#include "ps/table_params.h"

#include <cstdint>
#include <memory>

namespace dtrain::ps {

// Ranges are elements of the whole table and lie in range(). Each function that returns a Reason
// does all or nothing.
class Shard {
  public:
    // What the shard will hold at most: values, state, sums of open clocks.
    static uint64_t bytes_needed(const TableParams &params, uint64_t count);
    // nullptr: no memory. State and sums are allocated when first needed.
    static std::unique_ptr<Shard> create(const TableParams &params, const Range &range);

    const Range &range() const { return range_; }
    uint64_t size() const { return size_; } // bytes of one element
    uint64_t updates() const { return updates_; }

    void set(const Range &range, const void *values);
    // Applies a push at once. begins: it counts as one update (the first chunk of a push).
    Reason push(const Range &range, const void *g, bool begins);
    // Adds a push to the sums of its clock, which is applied or one of the open_clocks after it.
    Reason collect(uint64_t clock, const Range &range, const void *g);
    // Applies the sums of a clock, as one update; workers: how many took part, for DTRAIN_AVG.
    void apply(uint64_t clock, uint32_t workers);

    const void *at(uint64_t element) const;
    // Keeps the values in memory while an answer is sent from them.
    std::shared_ptr<const Buffer> values() const { return values_; }

  private:
    Shard(const TableParams &params, const Range &range);
    Reason allocate_slots();
    void update(const Range &local, const void *g);
    Range local(const Range &range) const { return {range.first - range_.first, range.count}; }

    TableParams params_;
    Range range_;
    uint64_t size_;
    std::shared_ptr<Buffer> values_;
    Buffer slots_[2];
    StepCounts steps_;
    Aggregate sums_[open_clocks]; // of clock c: c % open_clocks
    uint64_t updates_ = 0;
};

} // namespace dtrain::ps
