// The arithmetic of collectives on host memory: reduce, scale, weigh and copy.
// SPDX-License-Identifier: Apache-2.0
//
// dtypes and ops are the DTRAIN_* numbers of dtrain.h; AVG reduces as SUM and is finished by
// scale(). Buffers need no alignment and must not overlap except where they are the same. Every
// function may be called from any thread. reduce*() expect op_valid(op, dtype), scale() and they a
// known dtype.
//
// A result depends on the inputs and their order only, bit for bit: not on the processor, the
// alignment or the count. Integers wrap. f16 and bf16 are computed in f32 and rounded to nearest
// even. A NaN operand makes the result NaN, also in MIN and MAX, and a NaN result is always the
// positive quiet NaN without payload. MIN and MAX hold -0 to be less than +0. All this supposes the
// default floating-point environment (round to nearest, subnormals not flushed).
#pragma once
#include <cstdint>

namespace dtrain::device {

// dst[i] = dst[i] op src[i]
void reduce(void *dst, const void *src, uint64_t count, uint32_t dtype, uint32_t op);

// dst[i] = a[i] op b[i]; dst may be a or b.
void reduce_pair(void *dst, const void *a, const void *b, uint64_t count, uint32_t dtype,
                 uint32_t op);

// dst[i] = srcs[0][i] op srcs[1][i] op ..., from left to right, n >= 1; dst may be one of the srcs.
// f16 and bf16 stay f32 on the way and are rounded once, at the end. Each source is read once. AVG
// is the sum divided by n: of integers that of the exact sum, toward zero.
void reduce_many(void *dst, const void *const *srcs, uint32_t n, uint64_t count, uint32_t dtype,
                 uint32_t op);
// The same into m >= 1 places, each of which may be one of the srcs: cheaper than copies
// afterwards.
void reduce_to(void *const *dsts, uint32_t m, const void *const *srcs, uint32_t n, uint64_t count,
               uint32_t dtype, uint32_t op);

// dst[i] /= divisor, which is not 0; integers round toward zero.
void scale(void *dst, uint64_t count, uint32_t dtype, uint32_t divisor);

// Means over messages, where what is summed up travels: elements of another dtype, `parts` of them
// for one, whose sums are exact (integers) or in range (f16); others are summed up as they are.
struct SumFormat {
    uint32_t dtype, parts;
};
SumFormat sum_format(uint32_t dtype);
// Of a dtype that has another format, between n ranks. from_sums() makes the mean, rounded as by
// reduce_many(), and changes the sums. The two must not overlap.
void to_sums(void *dst, const void *src, uint64_t count, uint32_t dtype, uint32_t n);
void from_sums(void *dst, void *sums, uint64_t count, uint32_t dtype, uint32_t n);

// ---- floating dtypes only ----

// dst[i] = src[i] * factor; dst may be src.
void multiply(void *dst, const void *src, uint64_t count, uint32_t dtype, double factor);
// dst[i] = x * a[i] + y * b[i]; dst may be a or b.
void blend(void *dst, const void *a, double x, const void *b, double y, uint64_t count,
           uint32_t dtype);
// sums = {a.a, b.b, a.b}, computed in double.
void dots(const void *a, const void *b, uint64_t count, uint32_t dtype, double sums[3]);
// The sum of a.a, likewise; as fast as memory brings them.
double squares(const void *a, uint64_t count, uint32_t dtype);
// f16 or bf16 to f32 and back (to nearest even).
void widen(float *dst, const void *src, uint64_t count, uint32_t dtype);
void narrow(void *dst, const float *src, uint64_t count, uint32_t dtype);
// The same, but rounded down or up at random, up with the probability that makes the mean exact
// (Gupta et al.: Deep learning with limited numerical precision, ICML 2015). The randomness of an
// element is a function of seed and its number, which is first + i, modulo 2^32. What is larger
// than the format's largest number is rounded to nearest.
void narrow_randomly(void *dst, const float *src, uint64_t count, uint32_t dtype, uint32_t seed,
                     uint64_t first);
// dst[i] = weights[0] * srcs[0][i] + weights[1] * srcs[1][i] + ..., from left to right, n >= 1, for
// a floating-point dtype; dst may be one of the srcs. Weights are rounded to f32 unless the dtype
// is f64; f16 and bf16 stay f32 on the way and are rounded once, at the end.
void weigh(void *dst, const void *const *srcs, const double *weights, uint32_t n, uint64_t count,
           uint32_t dtype);

// ---- f32 and int8 ----

// The largest magnitude, 0 of nothing; NaN if there is one.
float largest(const float *src, uint64_t count);
// dst[i] = src[i] * factor, a number that is finite, rounded to nearest even, and at most 127
// either way.
void quantise(int8_t *dst, const float *src, uint64_t count, float factor);
// The same, but rounded at random as by narrow_randomly(), whose first is 0.
void quantise_randomly(int8_t *dst, const float *src, uint64_t count, float factor, uint32_t seed);
// dst[i] = src[i] * scale
void dequantise(float *dst, const int8_t *src, uint64_t count, float scale);

// For a destination that is read soon.
void copy(void *dst, const void *src, uint64_t bytes);
// For a destination larger than the cache or not read soon: its lines are not fetched first.
void copy_stream(void *dst, const void *src, uint64_t bytes);

uint64_t dtype_size(uint32_t dtype);    // bytes; 0 if unknown
const char *dtype_name(uint32_t dtype); // "f32"; nullptr if unknown
const char *op_name(uint32_t op);       // "sum"; nullptr if unknown
bool is_floating(uint32_t dtype);
// Both known, bitwise ops for integers and ADASUM for floating dtypes only. ADASUM is no kernel:
// collectives compose it.
bool op_valid(uint32_t op, uint32_t dtype);

// The variant chosen for this processor, for example "avx512_bf16" or "avx2".
const char *kernel_target();

} // namespace dtrain::device
