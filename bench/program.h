/* What benchmark programs of the C API share: a clock, errors that end the program, medians.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_PROGRAM_H
#define BENCH_PROGRAM_H
#include "dtrain.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static inline void must(dtrain_status_t status, const char *call) {
    char text[512];
    if (status == DTRAIN_OK) return;
    dtrain_last_error(text, sizeof text);
    fprintf(stderr, "%s: %s\n", call, text);
    exit(EXIT_FAILURE);
}
#define MUST(call) must((call), #call)

static inline int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline void sort(double *values, size_t count) {
    qsort(values, count, sizeof *values, ascending);
}

#endif
