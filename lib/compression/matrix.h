// Arithmetic on the columns of tall matrices. The order of additions is fixed, so ranks that
// compute the same thing get the same bits.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>

namespace dtrain::compression {

float dot(const float *a, const float *b, uint64_t n);
// y += factor * x
void add_multiple(float *y, float factor, const float *x, uint64_t n);
// Makes the columns, of n elements each, orthonormal (modified Gram-Schmidt, two passes per
// column). A column that depends on earlier ones becomes zero.
void orthonormalize(std::span<float> columns, uint64_t n);
// Fills x with random numbers in [-1, 1), equal on all ranks.
void fill_random(float *x, uint64_t n, uint64_t seed);

} // namespace dtrain::compression
