// The arithmetic of collectives in host memory: reduce, scale, weigh and copy.
// SPDX-License-Identifier: Apache-2.0
//
// dtypes and ops are the DTRAIN_* numbers of dtrain.h; AVG reduces as SUM, and scale() completes
// it. Buffers need no alignment and must not overlap unless they are the same. Any thread may call
// any function. reduce*() require op_valid(op, dtype); they and scale() require a known dtype.
//
// A result depends only on the inputs and their order, bit for bit: not on the processor, the
// alignment or the count. Integers wrap. f16 and bf16 are computed in f32 and rounded to nearest
// even. A NaN operand makes the result NaN, also in MIN and MAX, and a NaN result is always the
// positive quiet NaN without payload. MIN and MAX treat -0 as less than +0. All this requires the
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
// f16 and bf16 stay f32 until the end and are rounded once. Each source is read once. AVG is the
// sum divided by n; for integers it is the exact sum divided by n, rounded toward zero.
void reduce_many(void *dst, const void *const *srcs, uint32_t n, uint64_t count, uint32_t dtype,
                 uint32_t op);
// The same into m >= 1 destinations, each of which may be one of the srcs: cheaper than copies
// afterwards.
void reduce_to(void *const *dsts, uint32_t m, const void *const *srcs, uint32_t n, uint64_t count,
               uint32_t dtype, uint32_t op);

// dst[i] /= divisor, which must not be 0; integers round toward zero.
void scale(void *dst, uint64_t count, uint32_t dtype, uint32_t divisor);

// The format in which sums travel when a mean is computed over messages: each element becomes
// `parts` elements of another dtype, whose sums are exact (integers) or in range (f16). Other
// dtypes are summed as they are.
struct SumFormat {
    uint32_t dtype, parts;
};
SumFormat sum_format(uint32_t dtype);
// For a dtype with another sum format, between n ranks. from_sums() computes the mean, rounded as
// in reduce_many(), and modifies the sums. dst and src must not overlap.
void to_sums(void *dst, const void *src, uint64_t count, uint32_t dtype, uint32_t n);
void from_sums(void *dst, void *sums, uint64_t count, uint32_t dtype, uint32_t n);

// ---- floating-point dtypes only ----

// dst[i] = src[i] * factor; dst may be src.
void multiply(void *dst, const void *src, uint64_t count, uint32_t dtype, double factor);
// dst[i] = x * a[i] + y * b[i]; dst may be a or b.
void blend(void *dst, const void *a, double x, const void *b, double y, uint64_t count,
           uint32_t dtype);
// sums = {a.a, b.b, a.b}, computed in double.
void dots(const void *a, const void *b, uint64_t count, uint32_t dtype, double sums[3]);
// The sum of a.a, likewise, at the speed of the memory.
double squares(const void *a, uint64_t count, uint32_t dtype);
// Convert f16 or bf16 to f32 and back (rounded to nearest even).
void widen(float *dst, const void *src, uint64_t count, uint32_t dtype);
void narrow(void *dst, const float *src, uint64_t count, uint32_t dtype);
// The same, but rounds down or up at random, up with the probability that makes the mean exact
// (Gupta et al.: Deep learning with limited numerical precision, ICML 2015). The randomness of an
// element is a function of seed and the element's number, which is first + i, modulo 2^32. Values
// beyond the format's largest number are rounded to nearest.
void narrow_randomly(void *dst, const float *src, uint64_t count, uint32_t dtype, uint32_t seed,
                     uint64_t first);
// dst[i] = weights[0] * srcs[0][i] + weights[1] * srcs[1][i] + ..., from left to right, n >= 1, for
// a floating-point dtype; dst may be one of the srcs. Weights are rounded to f32 unless the dtype
// is f64; f16 and bf16 stay f32 until the end and are rounded once.
void weigh(void *dst, const void *const *srcs, const double *weights, uint32_t n, uint64_t count,
           uint32_t dtype);

// ---- f32 and int8 ----

// The largest magnitude; 0 if count is 0; NaN if any element is NaN.
float largest(const float *src, uint64_t count);
// dst[i] = src[i] * factor, rounded to nearest even and limited to -127 .. 127. The product must be
// finite.
void quantize(int8_t *dst, const float *src, uint64_t count, float factor);
// The same, but rounded at random as by narrow_randomly() with first = 0.
void quantize_randomly(int8_t *dst, const float *src, uint64_t count, float factor, uint32_t seed);
// dst[i] = src[i] * scale
void dequantize(float *dst, const int8_t *src, uint64_t count, float scale);

// For a destination that is read soon.
void copy(void *dst, const void *src, uint64_t bytes);
// For a destination that is larger than the cache or not read soon: its lines are not fetched
// first.
void copy_stream(void *dst, const void *src, uint64_t bytes);

uint64_t dtype_size(uint32_t dtype);    // bytes; 0 if unknown
const char *dtype_name(uint32_t dtype); // "f32"; nullptr if unknown
const char *op_name(uint32_t op);       // "sum"; nullptr if unknown
bool is_floating(uint32_t dtype);
// True if both are known, bitwise ops only for integers and ADASUM only for floating-point dtypes.
// ADASUM has no kernel: collectives compose it.
bool op_valid(uint32_t op, uint32_t dtype);

// The variant chosen for this processor, for example "avx512_bf16" or "avx2".
const char *kernel_target();

} // namespace dtrain::device
