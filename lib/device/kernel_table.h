// The kernels of one instruction set as a table, and the tables that this processor can run.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "dtrain_basics.h"

namespace dtrain::device {

inline constexpr uint32_t dtype_count = DTRAIN_U64 + 1; // 0 is no dtype
inline constexpr uint32_t op_count = DTRAIN_BXOR + 1;   // 0 is no op

// dsts[k][i] = srcs[0][i] op srcs[1][i] op ... for all m of k; m and n >= 1. AVG: the mean of the
// n. A destination may also be one of the srcs.
using ReduceFn = void(void *const *dsts, uint32_t m, const void *const *srcs, uint32_t n,
                      uint64_t count);
// dst[i] /= divisor
using ScaleFn = void(void *dst, uint64_t count, uint32_t divisor);

// dst[i] = src[i] * factor
using MultiplyFn = void(void *dst, const void *src, uint64_t count, double factor);
// dst[i] = x * a[i] + y * b[i]
using BlendFn = void(void *dst, const void *a, double x, const void *b, double y, uint64_t count);
// sums = {a.a, b.b, a.b}
using DotsFn = void(const void *a, const void *b, uint64_t count, double *sums);
// a.a
using SquaresFn = double(const void *a, uint64_t count);
using ConvertFn = void(void *dst, const void *src, uint64_t count);
// dst[i] = weights[0] * srcs[0][i] + weights[1] * srcs[1][i] + ..., n >= 1. dst may also be one of
// the srcs.
using WeighFn = void(void *dst, const void *const *srcs, const double *weights, uint32_t n,
                     uint64_t count);

using NarrowRandomlyFn = void(void *dst, const float *src, uint64_t count, uint32_t seed,
                              uint32_t first);

struct DtypeKernels {
    ReduceFn *ops[op_count];
    ScaleFn *scale;
    MultiplyFn *multiply = nullptr; // only floating-point dtypes have these four
    BlendFn *blend = nullptr;
    DotsFn *dots = nullptr;
    SquaresFn *squares = nullptr;
    ConvertFn *widen = nullptr;  // f16 and bf16: to f32,
    ConvertFn *narrow = nullptr; // and from f32
    NarrowRandomlyFn *narrow_randomly = nullptr;
    WeighFn *weigh = nullptr; // only floating-point dtypes
};

// Between f32 and int8, as the functions of kernels.h, except that largest() returns bits.
using LargestFn = uint32_t(const float *src, uint64_t count);
using QuantizeFn = void(int8_t *dst, const float *src, uint64_t count, float factor);
using QuantizeRandomlyFn = void(int8_t *dst, const float *src, uint64_t count, float factor,
                                uint32_t seed);
using DequantizeFn = void(float *dst, const int8_t *src, uint64_t count, float scale);

struct Kernels {
    const char *target;
    const DtypeKernels *dtypes[dtype_count];
    LargestFn *largest;
    QuantizeFn *quantize;
    QuantizeRandomlyFn *quantize_randomly;
    DequantizeFn *dequantize;
};

// The rank-th best table that this processor can run (0 = the best); nullptr beyond the last one.
const Kernels *supported_kernels(uint32_t rank);

} // namespace dtrain::device
