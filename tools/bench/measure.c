/* Runs the samples of one operation at one size, and verifies the results.
 * SPDX-License-Identifier: Apache-2.0 */
#include "measure.h"

#include "pattern.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static const size_t barrier_from = 64 << 10;     /* bytes */
static const size_t huge_page = (size_t)2 << 20; /* the same alignment for all ranks */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int failed(const bench_t *bench, const operation_t *operation, dtrain_status_t status) {
    char text[512];
    dtrain_last_error(text, sizeof text);
    fprintf(stderr, "dtrain-bench: rank %d: %s of %zu elements: %s (%s)\n", bench->rank,
            operation->name, bench->count, text, dtrain_status_name(status));
    return -1;
}

static int sample_count(const options_t *options, uint64_t bytes) {
    if (options->iterations > 0) return options->iterations;
    return bytes < 64 << 10 ? 1000 : bytes <= 1 << 20 ? 100 : bytes < 64 << 20 ? 20 : 7;
}

/* Writes to the memory, so that no page fault falls into a sample. */
static void *allocate(size_t bytes) {
    const size_t size = (bytes + huge_page - 1) / huge_page * huge_page;
    void *buffer = aligned_alloc(huge_page, size);
    if (buffer == NULL) {
        fprintf(stderr, "dtrain-bench: cannot allocate a buffer of %zu bytes\n", size);
        return NULL;
    }
    madvise(buffer, size, MADV_HUGEPAGE);
    memset(buffer, 0, size);
    return buffer;
}

static void rewrite(bench_t *bench, int sample) {
    if (bench->table != NULL) {
        for (size_t i = 0; i < bench->count; i++) ((float *)bench->send)[i] = 1;
        return;
    }
    /* Broadcast and in-place operations read recv; for the others this clears the last result. */
    pattern_fill(bench->recv, bench->count, bench->options->dtype, bench->rank, sample);
    pattern_fill(bench->send, bench->count, bench->options->dtype, bench->rank, sample);
}

static int verify(bench_t *bench, const operation_t *operation, int sample) {
    const uint32_t dtype = operation->traits & TABLE ? DTRAIN_F32 : bench->options->dtype;
    dtrain_status_t status = operation->traits & TABLE ? table_read(bench) : DTRAIN_OK;
    if (status != DTRAIN_OK) return failed(bench, operation, status);
    const size_t count = operation->checked != NULL ? operation->checked(bench) : 0;
    /* Only averages of floats are inexact: of bf16 they are rounded at each step. */
    const double rounding = bench->options->op == DTRAIN_AVG && dtype <= DTRAIN_BF16 ? 0x1p-6 : 0;
    for (size_t i = 0; i < count; i++) {
        const double found = pattern_read(bench->recv, i, dtype);
        const double wanted = operation->expected(bench, i, sample);
        if (fabs(found - wanted) <= rounding * wanted) continue;
        fprintf(stderr, "dtrain-bench: rank %d: %s of %zu elements: element %zu is %g, not %g\n",
                bench->rank, operation->name, bench->count, i, found, wanted);
        return -1;
    }
    return 0;
}

/* Samples [first, first + count); times[] may be NULL. */
static int sample(bench_t *bench, const operation_t *operation, int first, int count, int aligned,
                  double *times) {
    for (int k = first; k < first + count; k++) {
        rewrite(bench, k);
        dtrain_status_t status = aligned ? dtrain_barrier(bench->comm, NULL, NULL) : DTRAIN_OK;
        const double start = now();
        if (status == DTRAIN_OK) status = operation->run(bench);
        const double elapsed = now() - start;
        if (status != DTRAIN_OK) return failed(bench, operation, status);
        if (times != NULL) times[k - first] = operation->traits & PAIR ? elapsed / 2 : elapsed;
    }
    return 0;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int run_samples(bench_t *bench, const operation_t *operation, uint64_t bytes, double *times,
                       result_t *result) {
    const int samples = result->samples, warm_up = samples / 10 + 1;
    const int aligned = bytes >= barrier_from;
    dtrain_status_t status;
    if (sample(bench, operation, 0, warm_up, aligned, NULL) != 0 ||
        verify(bench, operation, warm_up - 1) != 0 ||
        sample(bench, operation, warm_up, samples, aligned, times) != 0 ||
        verify(bench, operation, warm_up + samples - 1) != 0)
        return -1;
    status = dtrain_allreduce(bench->comm, times, times, (uint64_t)samples, DTRAIN_F64, DTRAIN_MAX,
                              NULL, NULL);
    if (status != DTRAIN_OK) return failed(bench, operation, status);
    qsort(times, (size_t)samples, sizeof *times, ascending);
    result->min = times[0];
    result->median = times[samples / 2];
    result->max = times[samples - 1];
    return 0;
}

int measure(bench_t *bench, const operation_t *operation, uint64_t bytes, result_t *result) {
    char name[64];
    const size_t size = (size_t)bench->size;
    const uint32_t dtype = operation->traits & TABLE ? DTRAIN_F32 : bench->options->dtype;
    const size_t element = dtrain_dtype_size(dtype);
    bench->block = (bytes / element + size - 1) / size;
    if (bench->block == 0) bench->block = 1;
    /* Only operations with blocks are rounded to whole blocks: an all-reduce of 4 bytes keeps 4. */
    bench->count = operation->traits & BLOCKS ? bench->block * size : bytes / element;
    if (bench->count == 0) bench->count = 1;
    result->samples = sample_count(bench->options, bytes);
    double *times = calloc((size_t)result->samples, sizeof *times);
    bench->send = allocate(bench->count * element);
    bench->recv = allocate(bench->count * element);
    int done = times != NULL && bench->send != NULL && bench->recv != NULL ? 0 : -1;
    if (done == 0 && operation->traits & TABLE) {
        snprintf(name, sizeof name, "%s-%zu", operation->name, bench->count);
        dtrain_status_t status = table_open(bench, name);
        if (status != DTRAIN_OK) done = failed(bench, operation, status);
    }
    if (done == 0) done = run_samples(bench, operation, bytes, times, result);
    if (bench->table != NULL) dtrain_table_destroy(bench->table);
    bench->table = NULL;
    free(bench->send);
    free(bench->recv);
    free(times);
    return done;
}
