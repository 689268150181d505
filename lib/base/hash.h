// Mixing of 64-bit numbers. Not for secrets.
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

// For sequences: the hash of what came before and one more value. Quicker, and worse.
constexpr uint64_t mix(uint64_t before, uint64_t value) {
    before = (before ^ value) * 0x9e3779b97f4a7c15;
    return before ^ before >> 29;
}

} // namespace dtrain
