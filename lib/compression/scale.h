// A block's scale, which precedes its elements.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <cstring>

namespace dtrain::compression {

inline constexpr uint64_t scale_bytes = sizeof(float);

inline void put_scale(uint8_t *out, float scale) { std::memcpy(out, &scale, sizeof scale); }
inline float get_scale(const uint8_t *in) {
    float scale;
    std::memcpy(&scale, in, sizeof scale);
    return scale;
}

} // namespace dtrain::compression
