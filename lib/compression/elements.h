// Small helpers for elements: magnitudes as bits, a hash, error feedback.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cstdint>

namespace dtrain::compression {

inline constexpr uint32_t infinity_bits = 0x7f800000;

// Ordered like the magnitude; NaNs come last.
constexpr uint32_t magnitude_bits(float x) { return std::bit_cast<uint32_t>(x) & 0x7fffffff; }
constexpr float zero_unless_finite(float x) { return magnitude_bits(x) < infinity_bits ? x : 0.0f; }

// The finalizer of MurmurHash3 (Appleby, public domain).
constexpr uint64_t mix64(uint64_t h) {
    h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 33;
}

// kept += more
void accumulate(float *kept, const float *more, uint64_t n);
// kept -= sent. Values that are not finite become 0, because they would stay forever.
void keep_rest(float *kept, const float *sent, uint64_t n);
// Returns the squared norm.
double square_sum(const float *x, uint64_t n);

} // namespace dtrain::compression
