// Adds ranges to parts and sections to partitions.
// SPDX-License-Identifier: Apache-2.0
#include "ps/placement/partition.h"

namespace dtrain::ps {

Range intersect(const Range &a, const Range &b) {
    uint64_t first = std::max(a.first, b.first), end = std::min(a.end(), b.end());
    return end > first ? Range{first, end - first} : Range{first, 0};
}

void Part::add(const Range &range) {
    if (range.count == 0) return;
    if (!extents_.empty() && extents_.back().range.end() == range.first)
        extents_.back().range.count += range.count;
    else
        extents_.push_back({range, count_});
    count_ += range.count;
}

bool Part::contains(const Range &range) const {
    if (extents_.empty() || range.first < extents_.front().range.first) return false;
    return extent_of(range.first).range.contains(range);
}

void Partition::add(uint64_t end, uint32_t server) {
    if (end <= length_) return;
    length_ = end;
    if (!sections_.empty() && sections_.back().server == server)
        sections_.back().end = end;
    else
        sections_.push_back({end, server});
}

Part Partition::part(uint32_t server) const {
    Part part;
    uint64_t first = 0;
    for (const Section &section : sections_) {
        if (section.server == server) part.add({first, section.end - first});
        first = section.end;
    }
    return part;
}

uint64_t Partition::count(uint32_t server) const { return part(server).count(); }

} // namespace dtrain::ps
