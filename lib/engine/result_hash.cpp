// Hashes results in blocks, in which equal numbers have equal bits.
// SPDX-License-Identifier: Apache-2.0
#include "engine/result_hash.h"

#include "base/crc32c.h"
#include "dtrain_basics.h"

#include <algorithm>
#include <cstring>

namespace dtrain::engine {
namespace {

// Format of IEEE 754 whose infinity has these bits, and whose sign is the highest one.
template <class Bits, Bits infinity> void make_canonical(uint8_t *block, uint64_t bytes) {
    constexpr Bits sign = Bits(Bits{1} << (8 * sizeof(Bits) - 1));
    for (uint64_t at = 0; at < bytes; at += sizeof(Bits)) {
        Bits bits;
        std::memcpy(&bits, block + at, sizeof bits);
        const Bits magnitude = Bits(bits & Bits(~sign));
        if (magnitude == 0) bits = 0;
        if (magnitude > infinity) bits = infinity | 1;
        std::memcpy(block + at, &bits, sizeof bits);
    }
}

using Canonical = void (*)(uint8_t *block, uint64_t bytes);

Canonical canonical_of(uint32_t dtype) {
    switch (dtype) {
    case DTRAIN_F32: return make_canonical<uint32_t, 0x7f800000>;
    case DTRAIN_F64: return make_canonical<uint64_t, 0x7ff0000000000000>;
    case DTRAIN_F16: return make_canonical<uint16_t, 0x7c00>;
    case DTRAIN_BF16: return make_canonical<uint16_t, 0x7f80>;
    default: return nullptr; // numbers of one value have the same bits
    }
}

} // namespace

uint64_t result_hash(const void *data, uint64_t bytes, uint32_t dtype) {
    const Canonical canonical = canonical_of(dtype);
    if (canonical == nullptr) return crc32c(data, bytes);
    uint8_t block[4096];
    uint32_t sum = 0;
    for (uint64_t at = 0; at < bytes; at += sizeof block) {
        const uint64_t part = std::min<uint64_t>(bytes - at, sizeof block);
        std::memcpy(block, static_cast<const uint8_t *>(data) + at, part);
        canonical(block, part);
        sum = crc32c(block, part, sum);
    }
    return sum;
}

} // namespace dtrain::engine
