// Mixes 64-bit numbers. Not for cryptography.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace dtrain {

// A well-mixed bijection. Source: Steele, Lea, Flood: Fast splittable pseudorandom number
// generators, OOPSLA 2014 (with Stafford's constants).
constexpr uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

// For sequences: combines the hash of the values before with one more value. Faster than the above,
// but mixes less well.
constexpr uint64_t mix(uint64_t before, uint64_t value) {
    before = (before ^ value) * 0x9e3779b97f4a7c15;
    return before ^ before >> 29;
}

} // namespace dtrain
