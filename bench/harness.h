/* The timing core that dtrain and its peers share, so that all are measured alike
 * (bench/README.md).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif

/* What can be measured, on f32. `count`: elements of the whole vector, a multiple of the number of
 * ranks where each rank has a block of it. All-reduce and broadcast use recv alone. */
typedef enum kind {
    ALLREDUCE, /* sum, in place */
    REDUCE_SCATTER,
    ALLGATHER,
    BROADCAST, /* from rank 0 */
    REDUCE,    /* sum, to rank 0 */
    ALLTOALL,
    SENDRECV, /* from rank 0 to rank 1 and back; its time is that of one way */
    BARRIER,
    KIND_COUNT
} kind_t;
extern const char *const kind_names[KIND_COUNT];

/* What is measured. The functions are called by all ranks together and end the process when they
 * fail. */
typedef struct contender {
    const char *name, *version;
    int rank, size;
    void *self;
    /* Told before buffers of `count` elements are first used, untimed; may be NULL. */
    void (*prepare)(void *self, kind_t kind, float *send, float *recv, size_t count);
    void (*run)(void *self, kind_t kind, float *send, float *recv, size_t count);
    /* All-reduce of the harness's own few values. */
    void (*exchange)(void *self, float *values, size_t count);
    void (*barrier)(void *self);
} contender_t;

/* argv: PROGRAM KIND TRANSPORT BYTES..., bytes of the whole vector; rank 0 prints one JSON line
 * about the start and one per size. Returns main()'s result. */
int harness_run(const contender_t *contender, int argc, char **argv);

#ifdef __cplusplus
}
#endif
#endif
