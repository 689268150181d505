// One element at a time, as plainly as possible: what the kernels must compute, bit for bit.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "dtrain.h"

namespace reference {

template <class To, class From> To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

// A 16-bit float of the given number of stored mantissa bits, exactly as a double.
inline double from_half(uint16_t bits, int mantissa) {
    const int exponent_bits = 15 - mantissa, bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = (bits >> mantissa) & ((1 << exponent_bits) - 1);
    const int fraction = bits & ((1 << mantissa) - 1);
    double value;
    if (exponent == (1 << exponent_bits) - 1)
        value = fraction ? std::numeric_limits<double>::quiet_NaN()
                         : std::numeric_limits<double>::infinity();
    else if (exponent == 0)
        value = std::ldexp(fraction, 1 - bias - mantissa);
    else
        value = std::ldexp(fraction + (1 << mantissa), exponent - bias - mantissa);
    return bits & 0x8000 ? -value : value;
}

// To nearest even, by rounding the multiple of the value's last place.
inline uint16_t to_half(double value, int mantissa) {
    const int exponent_bits = 15 - mantissa, bias = (1 << (exponent_bits - 1)) - 1;
    const int infinity = ((1 << exponent_bits) - 1) << mantissa;
    if (std::isnan(value)) return static_cast<uint16_t>(infinity | (1 << (mantissa - 1)));
    const int sign = std::signbit(value) ? 0x8000 : 0;
    const double size = std::fabs(value);
    if (std::isinf(size)) return static_cast<uint16_t>(sign | infinity);
    int exponent = size == 0 ? 1 - bias : std::ilogb(size);
    if (exponent < 1 - bias) exponent = 1 - bias;
    // Carries run from the fraction into the exponent, up to infinity.
    const auto steps = static_cast<int>(std::nearbyint(std::ldexp(size, mantissa - exponent)));
    const int bits = ((exponent + bias - 1) << mantissa) + steps;
    return static_cast<uint16_t>(sign | (bits > infinity ? infinity : bits));
}

template <class F> F canonical(F value) {
    if (!std::isnan(value)) return value;
    if constexpr (sizeof(F) == 4)
        return bits_as<F>(uint32_t{0x7fc00000});
    else
        return bits_as<F>(uint64_t{0x7ff8000000000000});
}

template <class F> F apply_float(F a, F b, uint32_t op) {
    const bool less = a < b || (a == b && std::signbit(a) && !std::signbit(b));
    switch (op) {
    case DTRAIN_SUM: return canonical(a + b);
    case DTRAIN_PROD: return canonical(a * b);
    case DTRAIN_MIN: return canonical(std::isnan(a) || std::isnan(b) ? F(NAN) : less ? a : b);
    default: return canonical(std::isnan(a) || std::isnan(b) ? F(NAN) : less ? b : a);
    }
}

template <class T> T apply_integer(T a, T b, uint32_t op) {
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    switch (op) {
    case DTRAIN_SUM: return static_cast<T>(x + y);
    case DTRAIN_PROD: return static_cast<T>(x * y);
    case DTRAIN_MIN: return a < b ? a : b;
    case DTRAIN_MAX: return a < b ? b : a;
    case DTRAIN_BAND: return static_cast<T>(x & y);
    case DTRAIN_BOR: return static_cast<T>(x | y);
    default: return static_cast<T>(x ^ y);
    }
}

// Folds n elements from left to right, one at index i of each source.
template <class T> T fold(const void *const *srcs, uint32_t n, uint64_t i, uint32_t op) {
    auto element = [&](uint32_t k) {
        T value;
        std::memcpy(&value, static_cast<const char *>(srcs[k]) + i * sizeof(T), sizeof(T));
        return value;
    };
    T result = element(0);
    if constexpr (std::is_floating_point_v<T>) result = canonical(result);
    for (uint32_t k = 1; k < n; k++)
        if constexpr (std::is_integral_v<T>)
            result = apply_integer(result, element(k), op);
        else
            result = apply_float(result, element(k), op);
    return result;
}

template <int mantissa>
uint16_t fold_half(const void *const *srcs, uint32_t n, uint64_t i, uint32_t op) {
    auto element = [&](uint32_t k) {
        uint16_t bits;
        std::memcpy(&bits, static_cast<const char *>(srcs[k]) + i * 2, 2);
        return bits;
    };
    auto result = static_cast<float>(from_half(element(0), mantissa));
    for (uint32_t k = 1; k < n; k++)
        result = apply_float(result, static_cast<float>(from_half(element(k), mantissa)), op);
    return to_half(result, mantissa);
}

// The mean of n elements, one at index i of each source: of floats the sum from left to right,
// divided; of integers the exact one, toward zero.
template <class F, class Load> F mean(Load load, uint32_t n) {
    F sum = load(0);
    for (uint32_t k = 1; k < n; k++) sum += load(k);
    return canonical(sum / static_cast<F>(n));
}

// Its bits, in the low bytes.
inline uint64_t mean(const void *const *srcs, uint32_t n, uint64_t i, uint32_t dtype) {
    auto element = [&](uint32_t k, auto value) {
        std::memcpy(&value, static_cast<const char *>(srcs[k]) + i * sizeof value, sizeof value);
        return value;
    };
    auto integer = [&](auto zero) {
        __int128 sum = 0;
        for (uint32_t k = 0; k < n; k++) sum += element(k, zero);
        return static_cast<uint64_t>(static_cast<decltype(zero)>(sum / n)) &
               (~uint64_t{0} >> (64 - 8 * sizeof zero));
    };
    auto half = [&](int mantissa) {
        auto load = [&](uint32_t k) {
            return static_cast<float>(from_half(element(k, uint16_t{0}), mantissa));
        };
        return to_half(mean<float>(load, n), mantissa);
    };
    switch (dtype) {
    case DTRAIN_F32:
        return bits_as<uint32_t>(mean<float>([&](uint32_t k) { return element(k, 0.0f); }, n));
    case DTRAIN_F64:
        return bits_as<uint64_t>(mean<double>([&](uint32_t k) { return element(k, 0.0); }, n));
    case DTRAIN_F16: return half(10);
    case DTRAIN_BF16: return half(7);
    case DTRAIN_I8: return integer(int8_t{});
    case DTRAIN_U8: return integer(uint8_t{});
    case DTRAIN_I16: return integer(int16_t{});
    case DTRAIN_U16: return integer(uint16_t{});
    case DTRAIN_I32: return integer(int32_t{});
    case DTRAIN_U32: return integer(uint32_t{});
    case DTRAIN_I64: return integer(int64_t{});
    default: return integer(uint64_t{});
    }
}

// The bits of the result for element i, in the low bytes.
inline uint64_t fold(const void *const *srcs, uint32_t n, uint64_t i, uint32_t dtype, uint32_t op) {
    if (op == DTRAIN_AVG) return mean(srcs, n, i, dtype);
    switch (dtype) {
    case DTRAIN_F32: return bits_as<uint32_t>(fold<float>(srcs, n, i, op));
    case DTRAIN_F64: return bits_as<uint64_t>(fold<double>(srcs, n, i, op));
    case DTRAIN_F16: return fold_half<10>(srcs, n, i, op);
    case DTRAIN_BF16: return fold_half<7>(srcs, n, i, op);
    case DTRAIN_I8: return static_cast<uint8_t>(fold<int8_t>(srcs, n, i, op));
    case DTRAIN_U8: return fold<uint8_t>(srcs, n, i, op);
    case DTRAIN_I16: return static_cast<uint16_t>(fold<int16_t>(srcs, n, i, op));
    case DTRAIN_U16: return fold<uint16_t>(srcs, n, i, op);
    case DTRAIN_I32: return static_cast<uint32_t>(fold<int32_t>(srcs, n, i, op));
    case DTRAIN_U32: return fold<uint32_t>(srcs, n, i, op);
    case DTRAIN_I64: return static_cast<uint64_t>(fold<int64_t>(srcs, n, i, op));
    default: return fold<uint64_t>(srcs, n, i, op);
    }
}

// A weighted sum from left to right in F; the product is rounded before it is added.
template <class F, class Load>
F weighed(Load load, const double *weights, const void *const *srcs, uint32_t n, uint64_t i) {
    F sum = 0;
    for (uint32_t k = 0; k < n; k++) {
        volatile F product = static_cast<F>(weights[k]) * load(srcs[k], i);
        sum = k == 0 ? product : sum + product;
    }
    return canonical(sum);
}

// The bits of the weighted sum of element i, in the low bytes.
inline uint64_t weigh(const void *const *srcs, const double *weights, uint32_t n, uint64_t i,
                      uint32_t dtype) {
    auto load = [](auto zero) {
        return [zero](const void *src, uint64_t at) {
            auto value = zero;
            std::memcpy(&value, static_cast<const char *>(src) + at * sizeof value, sizeof value);
            return value;
        };
    };
    if (dtype == DTRAIN_F32)
        return bits_as<uint32_t>(weighed<float>(load(0.0f), weights, srcs, n, i));
    if (dtype == DTRAIN_F64)
        return bits_as<uint64_t>(weighed<double>(load(0.0), weights, srcs, n, i));
    const int mantissa = dtype == DTRAIN_F16 ? 10 : 7;
    auto half = [&](const void *src, uint64_t at) {
        return static_cast<float>(from_half(load(uint16_t{0})(src, at), mantissa));
    };
    return to_half(weighed<float>(half, weights, srcs, n, i), mantissa);
}

// The bits of an element divided, in the low bytes; bits holds the element in its low bytes.
inline uint64_t divide(uint64_t bits, uint32_t dtype, uint32_t divisor) {
    const auto f32 = static_cast<float>(divisor);
    switch (dtype) {
    case DTRAIN_F32:
        return bits_as<uint32_t>(canonical(bits_as<float>(static_cast<uint32_t>(bits)) / f32));
    case DTRAIN_F64: return bits_as<uint64_t>(canonical(bits_as<double>(bits) / divisor));
    case DTRAIN_F16:
        return to_half(static_cast<float>(from_half(static_cast<uint16_t>(bits), 10)) / f32, 10);
    case DTRAIN_BF16:
        return to_half(static_cast<float>(from_half(static_cast<uint16_t>(bits), 7)) / f32, 7);
    case DTRAIN_I8: return static_cast<uint8_t>(static_cast<int8_t>(bits) / int64_t{divisor});
    case DTRAIN_I16: return static_cast<uint16_t>(static_cast<int16_t>(bits) / int64_t{divisor});
    case DTRAIN_I32: return static_cast<uint32_t>(static_cast<int32_t>(bits) / int64_t{divisor});
    case DTRAIN_I64: return static_cast<uint64_t>(static_cast<int64_t>(bits) / int64_t{divisor});
    default: return bits / divisor;
    }
}

} // namespace reference
