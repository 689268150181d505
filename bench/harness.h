/* The timing core that dtrain and its peers share, so that all are measured alike
 * (bench/README.md). SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif

/* What is measured. The functions are called by all ranks together, sum floats in place and end the
 * process when they fail. */
typedef struct contender {
    const char *name, *version;
    int rank, size;
    void *self;
    /* Told before a buffer is first used, untimed; may be NULL. */
    void (*prepare)(void *self, float *buffer, size_t count);
    void (*allreduce)(void *self, float *buffer, size_t count);
    /* As allreduce; the harness's own few values. */
    void (*exchange)(void *self, float *values, size_t count);
    void (*barrier)(void *self);
} contender_t;

/* argv: PROGRAM TRANSPORT BYTES...; rank 0 prints one JSON line about the start and one per size.
 * Returns main()'s result. */
int harness_run(const contender_t *contender, int argc, char **argv);

#ifdef __cplusplus
}
#endif
#endif
