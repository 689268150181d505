// Searches for exponents with all bits set.
// SPDX-License-Identifier: Apache-2.0
#include "device/finite.h"

#include "dtrain_basics.h"

#include <algorithm>
#include <cstring>

namespace dtrain::device {
namespace {

constexpr uint64_t looked_at_once = 256;

// A NaN and an infinity have all exponent bits set. The loop has no branch per value, so that
// compilers vectorize it.
template <class Bits> uint64_t find(const void *values, uint64_t count, Bits exponent) {
    Bits bits[looked_at_once];
    for (uint64_t at = 0; at < count; at += looked_at_once) {
        const uint64_t n = std::min(looked_at_once, count - at);
        std::memcpy(bits, static_cast<const char *>(values) + at * sizeof(Bits), n * sizeof(Bits));
        uint32_t found = 0;
        for (uint64_t i = 0; i < n; ++i) found |= (bits[i] & exponent) == exponent;
        if (found == 0) continue;
        const auto is_one = [&](Bits b) { return (b & exponent) == exponent; };
        return at + uint64_t(std::find_if(bits, bits + n, is_one) - bits);
    }
    return count;
}

} // namespace

uint64_t first_not_finite(const void *values, uint64_t count, uint32_t dtype) {
    switch (dtype) {
    case DTRAIN_F32: return find<uint32_t>(values, count, 0x7f800000);
    case DTRAIN_F64: return find<uint64_t>(values, count, 0x7ff0000000000000);
    case DTRAIN_F16: return find<uint16_t>(values, count, 0x7c00);
    case DTRAIN_BF16: return find<uint16_t>(values, count, 0x7f80);
    default: return count;
    }
}

} // namespace dtrain::device
