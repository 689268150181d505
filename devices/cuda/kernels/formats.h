// How elements lie in memory and in registers: get() and put() convert between the two.
// SPDX-License-Identifier: Apache-2.0
//
// The bits are those of lib/device/simd/formats-inl.h: a stored NaN is the positive quiet NaN
// without payload; f16 and bf16 are f32 in registers, rounded to nearest even. The conversions are
// integer code, because the instructions of GPUs and CPUs treat NaNs differently.
#pragma once
#include "portable.h"

namespace dtrain::cuda {

// Random rounding is that of lib/device/simd/random-inl.h. Clears the low bits, after carrying with
// the probability of their value out of 2^bits.
template <int bits> DT_FN uint32_t cut_at_random(uint32_t magnitude, uint32_t random) {
    return (magnitude + (random >> (32 - bits))) >> bits << bits;
}
DT_FN uint32_t random_word(uint32_t seed, uint32_t number) {
    uint32_t h = seed ^ number * 0x9e3779b9u; // the finalizer of MurmurHash3
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

template <class T> struct Integer {
    using Stored = T;
    using Lane = T;
    static constexpr bool floating = false;
    DT_FN T get(T x) { return x; }
    DT_FN T put(T x) { return x; }
};

struct F32 {
    using Stored = float;
    using Lane = float;
    static constexpr bool floating = true;
    DT_FN float get(float x) { return x; }
    DT_FN float put(float x) { return x != x ? bits_as<float>(0x7fc00000u) : x; }
};

struct F64 {
    using Stored = double;
    using Lane = double;
    static constexpr bool floating = true;
    DT_FN double get(double x) { return x; }
    DT_FN double put(double x) {
        return x != x ? bits_as<double>(uint64_t(0x7ff8000000000000)) : x;
    }
};

struct Bf16 {
    using Stored = uint16_t;
    using Lane = float;
    static constexpr bool floating = true;
    DT_FN float get(uint16_t x) { return bits_as<float>(uint32_t(x) << 16); }
    DT_FN uint16_t put(float x) {
        const uint32_t bits = bits_as<uint32_t>(x);
        if (x != x) return 0x7fc0;
        return uint16_t((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
    }
    // One of the two neighbors of x, at random; x itself beyond the largest number.
    DT_FN float snapped(float x, uint32_t random) {
        const uint32_t bits = bits_as<uint32_t>(x);
        if ((bits & 0x7fffffffu) >= 0x7f7f0000u) return x;
        return bits_as<float>(cut_at_random<16>(bits, random));
    }
};

// An exact multiplication rebiases the exponent on loading, which normalizes subnormals, too. On
// storing, subnormals are rounded by adding 0.5, whose last bit equals the least subnormal.
struct F16 {
    using Stored = uint16_t;
    using Lane = float;
    static constexpr bool floating = true;
    DT_FN float get(uint16_t x) {
        const uint32_t sign = uint32_t(x & 0x8000) << 16, rest = uint32_t(x & 0x7fff) << 13;
        const float two_112 = bits_as<float>(0x77800000u);
        const uint32_t value = rest >= 0x7c00u << 13
                                   ? rest | 0x7f800000u
                                   : bits_as<uint32_t>(bits_as<float>(rest) * two_112);
        return bits_as<float>(value | sign);
    }
    DT_FN uint16_t put(float x) {
        const uint32_t bits = bits_as<uint32_t>(x), rest = bits & 0x7fffffffu;
        const uint16_t sign = uint16_t(bits >> 16 & 0x8000);
        if (rest > 0x7f800000u) return 0x7e00;
        if (rest > 0x477fffffu) return uint16_t(sign | 0x7c00); // from 2^16 on
        if (rest < 0x38800000u) {                               // below 2^-14
            const float sum = bits_as<float>(rest) + 0.5f;
            return uint16_t(sign | (bits_as<uint32_t>(sum) - bits_as<uint32_t>(0.5f)));
        }
        const uint32_t rebiased = rest + 0xfffu - (112u << 23);
        return uint16_t(sign | (rebiased + (rest >> 13 & 1)) >> 13);
    }
    DT_FN float snapped(float x, uint32_t random) {
        const uint32_t bits = bits_as<uint32_t>(x), magnitude = bits & 0x7fffffffu;
        if (magnitude >= 0x477fe000u) return x; // 65504
        if (magnitude >= 0x38800000u) return bits_as<float>(cut_at_random<13>(bits, random));
        // Below 2^-14 numbers are 2^-24 apart, of which there are at most 2^10.
        const float steps = bits_as<float>(magnitude) * 16777216.0f, below = float(int(steps));
        const float uniform = float(int(random >> 8)) * (1 / 16777216.0f);
        const float whole = below + (steps - below > uniform ? 1.0f : 0.0f);
        const float small = whole * (1 / 16777216.0f);
        return bits_as<float>(bits_as<uint32_t>(small) | (bits ^ magnitude));
    }
};

} // namespace dtrain::cuda
