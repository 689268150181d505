// Derives the dependencies between steps from the memory that they read and write.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/hazards.h"

#include <utility>

namespace dtrain::collectives {

Hazards::Segments::iterator Hazards::split(uint64_t at) {
    auto next = segments_.lower_bound(at);
    if (next == segments_.begin() || (next != segments_.end() && next->first == at)) return next;
    Segment &before = std::prev(next)->second;
    if (before.end <= at) return next;
    Segment after = before;
    before.end = at;
    return segments_.emplace_hint(next, at, std::move(after));
}

void Hazards::read(uint64_t begin, uint64_t end, uint32_t step, std::vector<uint32_t> &deps) {
    auto it = split(begin);
    split(end);
    for (uint64_t at = begin; at < end; at = it->second.end, ++it) {
        if (it == segments_.end() || it->first > at) { // a gap: never written
            uint64_t gap_end = it == segments_.end() || it->first > end ? end : it->first;
            it = segments_.emplace_hint(it, at, Segment{gap_end, nobody, {}});
        }
        Segment &segment = it->second;
        if (segment.writer != nobody) deps.push_back(segment.writer);
        segment.readers.push_back(step);
    }
}

void Hazards::write(uint64_t begin, uint64_t end, uint32_t step, std::vector<uint32_t> &deps) {
    auto first = split(begin), last = split(end);
    for (auto it = first; it != last; ++it) {
        const Segment &segment = it->second;
        for (uint32_t reader : segment.readers)
            if (reader != step) deps.push_back(reader);
        // The readers already waited for the writer.
        if (segment.readers.empty() && segment.writer != nobody) deps.push_back(segment.writer);
    }
    segments_.erase(first, last);
    segments_.insert_or_assign(begin, Segment{end, step, {}});
}

} // namespace dtrain::collectives
