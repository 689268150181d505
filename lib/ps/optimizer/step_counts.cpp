// Splits, merges, reads and writes runs of counts.
// SPDX-License-Identifier: Apache-2.0
#include "ps/optimizer/step_counts.h"

#include <algorithm>

namespace dtrain::ps {

size_t StepCounts::split(uint64_t at) {
    if (at == 0) return 0;
    auto run = std::lower_bound(runs_.begin(), runs_.end(), at,
                                [](const Run &r, uint64_t element) { return r.end < element; });
    auto index = static_cast<size_t>(run - runs_.begin());
    if (run->end != at) runs_.insert(run, {at, run->count});
    return index + 1;
}

void StepCounts::read(const Range &range, uint64_t *counts) const {
    auto run = std::upper_bound(runs_.begin(), runs_.end(), range.first,
                                [](uint64_t element, const Run &r) { return element < r.end; });
    for (uint64_t at = range.first; at < range.end(); ++run) {
        uint64_t end = std::min(run->end, range.end());
        counts = std::fill_n(counts, end - at, run->count);
        at = end;
    }
}

void StepCounts::write(const Range &range, const uint64_t *counts) {
    std::vector<Run> fresh;
    for (uint64_t i = 0; i < range.count; ++i) {
        if (fresh.empty() || fresh.back().count != counts[i]) fresh.push_back({0, counts[i]});
        fresh.back().end = range.first + i + 1;
    }
    size_t from = split(range.first), to = split(range.end());
    auto at = runs_.erase(runs_.begin() + static_cast<ptrdiff_t>(from),
                          runs_.begin() + static_cast<ptrdiff_t>(to));
    runs_.insert(at, fresh.begin(), fresh.end());
    merge(from, from + fresh.size());
}

void StepCounts::merge(size_t from, size_t to) {
    auto begin = runs_.begin() + static_cast<ptrdiff_t>(from > 0 ? from - 1 : 0);
    auto end = runs_.begin() + static_cast<ptrdiff_t>(std::min(to + 1, runs_.size()));
    auto kept = begin;
    for (auto run = begin + 1; run < end; ++run) {
        if (run->count == kept->count)
            kept->end = run->end;
        else
            *++kept = *run;
    }
    runs_.erase(kept + 1, end);
}

} // namespace dtrain::ps
