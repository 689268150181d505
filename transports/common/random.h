// A small seeded generator for test transports. Not for cryptography.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace dtrain::tp {

// splitmix64. Source: Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014.
inline uint64_t next_random(uint64_t &state) {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

} // namespace dtrain::tp
