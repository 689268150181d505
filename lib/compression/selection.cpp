// Finds the threshold of the k greatest magnitudes.
// SPDX-License-Identifier: Apache-2.0
#include "compression/selection.h"

#include "compression/elements.h"

#include <algorithm>

namespace dtrain::compression {

void Selection::begin(uint64_t k) {
    std::fill(counts_.begin(), counts_.end(), 0u);
    threshold_ = 0;
    second_ = false;
    left_ = k;
}

void Selection::count(const float *x, uint64_t n) {
    constexpr uint32_t low = (1u << low_bits) - 1;
    for (uint64_t i = 0; i < n; i++) {
        const uint32_t bits = magnitude_bits(x[i]);
        if (!second_)
            counts_[bits >> low_bits]++;
        else if (bits >> low_bits == threshold_)
            counts_[bits & low]++;
    }
}

void Selection::rank() {
    size_t at = counts_.size() - 1;
    for (; at > 0 && counts_[at] < left_; at--) left_ -= counts_[at];
    threshold_ = second_ ? threshold_ << low_bits | uint32_t(at) : uint32_t(at);
    second_ = true;
    std::fill(counts_.begin(), counts_.end(), 0u);
}

bool Selection::chosen(float x) {
    const uint32_t bits = magnitude_bits(x);
    if (bits != threshold_) return bits > threshold_;
    if (left_ == 0) return false;
    left_--;
    return true;
}

} // namespace dtrain::compression
