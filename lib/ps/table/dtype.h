// Element types of tables: conversions, and code that is generic over the types.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dtrain_basics.h"

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace dtrain::ps {

// Storage of f16 and bf16; arithmetic is done in float.
struct Half {
    uint16_t bits;
};
struct Bfloat {
    uint16_t bits;
};

// Calls f.operator()<T>() with the C++ type T of a known dtype.
template <class F> auto visit_dtype(uint32_t dtype, F &&f) {
    switch (dtype) {
    case DTRAIN_F32: return f.template operator()<float>();
    case DTRAIN_F64: return f.template operator()<double>();
    case DTRAIN_F16: return f.template operator()<Half>();
    case DTRAIN_BF16: return f.template operator()<Bfloat>();
    case DTRAIN_I8: return f.template operator()<int8_t>();
    case DTRAIN_U8: return f.template operator()<uint8_t>();
    case DTRAIN_I16: return f.template operator()<int16_t>();
    case DTRAIN_U16: return f.template operator()<uint16_t>();
    case DTRAIN_I32: return f.template operator()<int32_t>();
    case DTRAIN_U32: return f.template operator()<uint32_t>();
    case DTRAIN_I64: return f.template operator()<int64_t>();
    default: return f.template operator()<uint64_t>();
    }
}

inline float to_float(Bfloat value) {
    return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}

inline Bfloat to_bfloat(float value) { // to nearest, ties to even
    auto bits = std::bit_cast<uint32_t>(value);
    bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    return {static_cast<uint16_t>(nan ? (bits >> 16 | 0x40) : rounded)};
}

inline float to_float(Half value) {
    uint32_t sign = (value.bits & 0x8000u) << 16, magnitude = value.bits & 0x7fffu;
    // Moves exponent and mantissa into place, then corrects the bias. Exact for subnormals, too.
    float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
    uint32_t bits = std::bit_cast<uint32_t>(scaled) | (magnitude >= 0x7c00u ? 0x7f800000u : 0);
    return std::bit_cast<float>(bits | sign);
}

inline Half to_half(float value) { // to nearest, ties to even
    auto bits = std::bit_cast<uint32_t>(value);
    uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu, half;
    if (magnitude >= 0x47800000u) // 65536 and more, infinity, NaN
        half = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
    else if (magnitude < 0x38800000u) // below 2^-14: adding 0.5 rounds to multiples of 2^-24
        half = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
    else
        half = (magnitude + 0xfffu + (magnitude >> 13 & 1) - (112u << 23)) >> 13;
    return {static_cast<uint16_t>(half | sign)};
}

template <class T> T converted(double value) {
    if constexpr (std::is_same_v<T, Half>)
        return to_half(static_cast<float>(value));
    else if constexpr (std::is_same_v<T, Bfloat>)
        return to_bfloat(static_cast<float>(value));
    else
        return static_cast<T>(value);
}

} // namespace dtrain::ps
