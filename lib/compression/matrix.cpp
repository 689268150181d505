// Dot products, orthonormalization and random columns.
// SPDX-License-Identifier: Apache-2.0
#include "compression/matrix.h"

#include "compression/elements.h"

#include <cmath>

#if defined(__GNUC__) && !defined(__clang__) // so that loops are vectorized
#pragma GCC optimize("O3", "no-trapping-math")
#endif

namespace dtrain::compression {

float dot(const float *a, const float *b, uint64_t n) {
    constexpr uint64_t lanes = 16;
    float partial[lanes] = {}, sum = 0;
    uint64_t i = 0;
    for (; n - i >= lanes; i += lanes)
        for (uint64_t k = 0; k < lanes; k++) partial[k] += a[i + k] * b[i + k];
    for (uint64_t k = 0; i < n; i++, k++) partial[k] += a[i] * b[i];
    for (float p : partial) sum += p;
    return sum;
}

void add_multiple(float *__restrict y, float factor, const float *__restrict x, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) y[i] += factor * x[i];
}

void orthonormalize(std::span<float> columns, uint64_t n) {
    constexpr double dependent = 1e-6; // of the original length: a smaller rest is rounding error
    for (float *column = columns.data(); column != columns.data() + columns.size(); column += n) {
        const double before = std::sqrt(square_sum(column, n));
        for (int pass = 0; pass < 2; pass++) // the second pass removes rounding errors of the first
            for (const float *other = columns.data(); other != column; other += n)
                add_multiple(column, -dot(other, column, n), other, n);
        const double length = std::sqrt(square_sum(column, n));
        const float factor = length <= before * dependent ? 0 : float(1 / length);
        for (uint64_t i = 0; i < n; i++) column[i] *= factor;
    }
}

void fill_random(float *x, uint64_t n, uint64_t seed) {
    for (uint64_t i = 0; i < n; i++)
        x[i] = float(int32_t(mix64(seed + i) >> 40) - (1 << 23)) * 0x1p-23f;
}

} // namespace dtrain::compression
