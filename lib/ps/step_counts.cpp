// SPDX-License-Identifier: Apache-2.0
#include "ps/step_counts.h"

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
