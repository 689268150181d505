// Computes where blocks lie in a buffer.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/call/layout.h"

#include <algorithm>

namespace dtrain::collectives {

Layout::Layout(const CollectiveSpec &spec, std::span<const uint64_t> counts,
               std::span<const uint64_t> displs)
    : size_(spec.size), element_(spec.element_bytes), count_(spec.count), counts_(counts),
      displs_(displs) {
    if (counts_.empty() || !displs_.empty()) return;
    packed_.reserve(counts_.size());
    uint64_t end = 0;
    for (uint64_t count : counts_) {
        packed_.push_back(end);
        end += count * element_;
    }
}

Layout Layout::of_output(const CollectiveSpec &spec) {
    bool same = spec.recv_counts.empty();
    return Layout(spec, same ? spec.counts : spec.recv_counts,
                  same ? spec.displs : spec.recv_displs);
}

uint64_t Layout::offset(int32_t rank) const {
    if (!displs_.empty()) return displs_[size_t(rank)] * element_;
    return packed_.empty() ? uint64_t(rank) * count_ * element_ : packed_[size_t(rank)];
}

uint64_t Layout::end() const {
    uint64_t end = 0;
    for (int32_t rank = 0; rank < size_; rank++)
        if (bytes(rank)) end = std::max(end, offset(rank) + bytes(rank));
    return end;
}

uint64_t Layout::largest() const {
    uint64_t largest = counts_.empty() ? count_ : *std::max_element(counts_.begin(), counts_.end());
    return largest * element_;
}

} // namespace dtrain::collectives
