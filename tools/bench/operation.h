/* The operations that dtrain-bench measures, each as data.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_OPERATION_H
#define BENCH_OPERATION_H
#include "options.h"

#include <stddef.h>

typedef struct bench {
    const options_t *options;
    dtrain_comm_t *comm;
    int rank, size;
    size_t count, block;   /* elements of a buffer, and of a rank's block of it: count / size */
    void *send, *recv;     /* [count] each */
    dtrain_table_t *table; /* NULL except for table operations */
    int pushed;            /* samples pushed to the table so far, the same on all ranks */
} bench_t;

enum {
    TABLE = 1,    /* works on a table of `count` elements of f32 */
    BLOCKS = 2,   /* buffers hold a block for each rank */
    PAIR = 4,     /* needs two ranks; a sample is half of a round trip */
    SIZELESS = 8, /* measured once */
};
typedef struct operation {
    const char *name;
    uint32_t traits;
    dtrain_status_t (*run)(bench_t *bench);
    /* expected: the value of element i of recv. checked: how many elements of recv to check on this
     * rank. NULL: no check. */
    double (*expected)(const bench_t *bench, size_t i, int sample);
    size_t (*checked)(const bench_t *bench);
} operation_t;

extern const operation_t operations[]; /* ends with a name of NULL */

/* Tables (tables.c). */
dtrain_status_t run_push(bench_t *bench);
dtrain_status_t run_pull(bench_t *bench);
dtrain_status_t run_push_pull(bench_t *bench);
dtrain_status_t table_open(bench_t *bench, const char *name);
/* Reads into recv the result of all pushes. Collective. */
dtrain_status_t table_read(bench_t *bench);
double expected_table(const bench_t *bench, size_t i, int sample);

#endif
