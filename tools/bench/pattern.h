/* The contents of the buffers: small whole numbers that change with element, rank and sample, so
 * that every sum is exact in every type.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_PATTERN_H
#define BENCH_PATTERN_H
#include <stddef.h>
#include <stdint.h>

/* Element i of rank r before sample k: 1, 2 or 3. */
static inline int pattern_value(size_t i, int rank, int sample) {
    return 1 + (int)((i + (size_t)rank + (size_t)sample) % 3);
}
void pattern_fill(void *buffer, size_t count, uint32_t dtype, int rank, int sample);
/* Element i of a buffer as a number; NaN for an unknown dtype. */
double pattern_read(const void *buffer, size_t i, uint32_t dtype);
/* Stores a number of 0..2048 (256 for bf16 and 8-bit types), which is exact in every dtype. */
void pattern_write(void *element, uint32_t dtype, int value);

#endif
