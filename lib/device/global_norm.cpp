// Computes the norm without overflow or underflow, and clips by it.
// SPDX-License-Identifier: Apache-2.0
#include "device/global_norm.h"

#include "device/kernels.h"
#include "dtrain_basics.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace dtrain::device {
namespace {

// A smaller sum may contain squares that were subnormal or 0; squares of f32 values never are.
constexpr double least_sum = 0x1p-900;

// Calls f(values, count) for blocks of all f64 arrays.
template <class F> void for_each_block(std::span<const FloatArray> arrays, F &&f) {
    constexpr uint64_t block = 512;
    double values[block];
    for (const FloatArray &array : arrays) {
        if (array.dtype != DTRAIN_F64) continue;
        for (uint64_t at = 0; at < array.count; at += block) {
            const uint64_t count = std::min(block, array.count - at);
            std::memcpy(values, static_cast<const char *>(array.values) + at * sizeof(double),
                        count * sizeof(double));
            f(values, count);
        }
    }
}

GlobalNorm root(double sum, int exponent) {
    GlobalNorm norm;
    norm.fraction = std::frexp(std::sqrt(sum), &norm.exponent);
    norm.exponent += exponent;
    return norm;
}

} // namespace

double GlobalNorm::value() const { return std::ldexp(fraction, exponent); }

GlobalNorm global_norm(std::span<const FloatArray> arrays) {
    double sum = 0;
    bool finite = true;
    for (const FloatArray &array : arrays) {
        const double its = squares(array.values, array.count, array.dtype);
        sum += its;
        if (array.dtype != DTRAIN_F64) finite = finite && std::isfinite(its);
    }
    if (std::isfinite(sum) && sum >= least_sum) return root(sum, 0);
    double largest = 0; // of f64: next to such a number, values of other types do not count
    for_each_block(arrays, [&](const double *values, uint64_t count) {
        for (uint64_t i = 0; i < count; i++) {
            largest = std::max(largest, std::fabs(values[i]));
            finite = finite && std::isfinite(values[i]);
        }
    });
    if (!finite) return {HUGE_VAL, 0};
    if (largest == 0) return {};
    const int exponent = std::ilogb(largest);
    // In two steps, because 2^-exponent may not be finite.
    const double first = std::ldexp(1, -exponent / 2);
    const double second = std::ldexp(1, -exponent + exponent / 2);
    sum = 0;
    for_each_block(arrays, [&](double *values, uint64_t count) {
        multiply(values, values, count, DTRAIN_F64, first);
        multiply(values, values, count, DTRAIN_F64, second);
        sum += squares(values, count, DTRAIN_F64);
    });
    return root(sum, exponent);
}

void clip(const FloatArray &array, double most, const GlobalNorm &norm) {
    auto times = [&](double factor) {
        multiply(array.values, array.values, array.count, array.dtype, factor);
    };
    int exponent;
    const double quotient = std::frexp(most, &exponent) / norm.fraction;
    exponent -= norm.exponent;
    constexpr int step = -100; // so that no factor is subnormal, not even as f32
    for (; exponent < step; exponent -= step) times(std::ldexp(1, step));
    times(std::ldexp(quotient, exponent));
}

} // namespace dtrain::device
