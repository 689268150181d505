// Bit vectors with one bit per known tensor.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dtrain::gradients {

using Bits = std::vector<uint64_t>;

constexpr size_t words_for(size_t tensors) { return (tensors + 63) / 64; }
inline void set(Bits &bits, uint32_t i) { bits[i / 64] |= uint64_t{1} << i % 64; }
inline void clear(Bits &bits, uint32_t i) { bits[i / 64] &= ~(uint64_t{1} << i % 64); }
inline bool get(const Bits &bits, uint32_t i) {
    return i / 64 < bits.size() && (bits[i / 64] >> i % 64 & 1) != 0;
}

// Calls f(index) for every set bit, in ascending order.
template <class F> void for_each_bit(std::span<const uint64_t> bits, F &&f) {
    for (size_t w = 0; w < bits.size(); w++)
        for (uint64_t rest = bits[w]; rest != 0; rest &= rest - 1)
            f(uint32_t(w * 64 + size_t(std::countr_zero(rest))));
}

} // namespace dtrain::gradients
