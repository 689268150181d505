// Elements of simulated tables of f32 that are stored, or travel, in fewer bytes.
// SPDX-License-Identifier: Apache-2.0
//
// An element is a row of two numbers: how often it was pushed, in its worker's clock that it is for
// (`Whose`), and, where int8 are stored, 127 once anything was pushed: so the scale of its block is
// 1, and whole numbers are exact. Elsewhere counts are exact (f16, bf16), or off by little (int8 on
// the wire, of a block whose largest is a count).
#pragma once
#include "history.h"

#include <array>
#include <bit>
#include <cmath>

inline constexpr uint32_t numbers_of_narrow = 2;

inline uint64_t narrow_element(float count, bool pinned) {
    return std::bit_cast<uint64_t>(std::array<float, 2>{count, pinned ? 127.0F : 0.0F});
}

// As the history has it; what is no count, or has lost its pin, is more than can be.
inline uint64_t digits_of(uint64_t element, bool pinned, uint64_t clock) {
    const auto [count, pin] = std::bit_cast<std::array<float, 2>>(element);
    const float whole = std::round(count);
    const bool is_count = std::fabs(count - whole) < 0.1F && whole >= 0 && whole <= most_pushes;
    const bool holds = pin == 0 ? !pinned || whole == 0 : pinned && pin == 127;
    return is_count && holds ? uint64_t(whole) << 4 * clock : UINT64_MAX;
}
