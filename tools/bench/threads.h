/* A job whose ranks are threads of this process.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_THREADS_H
#define BENCH_THREADS_H
#include "options.h"

/* Runs body once per rank, each with its own context and communicator. Returns 0 if all return
 * 0. */
int run_threads(const options_t *options, int (*body)(const options_t *, dtrain_comm_t *));
/* The same for this process as one rank of the job of the environment. */
int run_process(const options_t *options, int (*body)(const options_t *, dtrain_comm_t *));

#endif
