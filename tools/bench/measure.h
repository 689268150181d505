/* Measures one operation at one size.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H
#include "operation.h"

typedef struct result {
    double min, median, max; /* seconds of the slowest rank */
    int samples;
} result_t;

/* Collective. Returns 0, or -1 with the reason on stderr. */
int measure(bench_t *bench, const operation_t *operation, uint64_t bytes, result_t *result);

#endif
