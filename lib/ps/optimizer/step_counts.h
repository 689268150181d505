// Counts the updates of each element, stored as runs of equal counts.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/placement/partition.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dtrain::ps {

// Exact for any mix of ranges. There is one run as long as pushed ranges tile the shard, a few runs
// in practice, and never more runs than elements.
class StepCounts {
  public:
    explicit StepCounts(uint64_t length) : runs_{{length, 0}} {}

    // Counts one update of the range and calls f(part, its new count) for each run in it.
    template <class F> void advance(const Range &range, F &&f) {
        size_t from = split(range.first), to = split(range.end());
        uint64_t first = range.first;
        for (size_t i = from; i < to; ++i) {
            f(Range{first, runs_[i].end - first}, ++runs_[i].count);
            first = runs_[i].end;
        }
        merge(from, to);
    }
    void read(const Range &range, uint64_t *counts) const;
    void write(const Range &range, const uint64_t *counts);
    size_t runs() const { return runs_.size(); }

  private:
    struct Run {
        uint64_t end, count; // the run lasts from the end of the one before it
    };
    size_t split(uint64_t at); // index of the run that begins there; cuts a run if needed
    void merge(size_t from, size_t to);

    std::vector<Run> runs_;
};

} // namespace dtrain::ps
