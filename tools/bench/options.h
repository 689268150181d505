/* dtrain-bench's command line.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H
#include "dtrain.h"

enum { MAX_SIZES = 64, MAX_THREADS = 256 };
enum { FORMAT_TABLE, FORMAT_CSV, FORMAT_JSON };

typedef struct options {
    const char *operations;    /* names, separated by commas */
    uint64_t sizes[MAX_SIZES]; /* bytes */
    int size_count;
    int threads;    /* ranks as threads of this process; 0: the job of the environment */
    int iterations; /* 0: depends on the size */
    int format;
    int in_place; /* all-reduce */
    uint32_t dtype, op;
    const char *dtype_name, *op_name;
} options_t;

/* Returns 0; -1 with the reason on stderr; 1 when it has answered --help or --version. */
int options_parse(options_t *options, int argc, char **argv);

#endif
