/* dtrain in the comparison.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtrain.h"
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>

static dtrain_context_t *context;
static dtrain_mem_t *memory;

static void check(dtrain_status_t status) {
    char text[512];
    if (status == DTRAIN_OK) return;
    dtrain_last_error(text, sizeof text);
    fprintf(stderr, "dtrain: %s (%s)\n", text, dtrain_status_name(status));
    exit(EXIT_FAILURE);
}

static void allreduce(void *comm, float *buffer, size_t count) {
    check(dtrain_allreduce(comm, buffer, buffer, count, DTRAIN_F32, DTRAIN_SUM, NULL, NULL));
}

/* Moves the buffer into memory that all ranks map (BENCH_SHARED). */
static void share(void *self, float *buffer, size_t count) {
    (void)self;
    dtrain_mem_params_t params;
    DTRAIN_INIT(&params);
    params.address = buffer;
    params.length = count * sizeof *buffer;
    params.flags = DTRAIN_MEM_SHARED;
    check(dtrain_mem_deregister(memory));
    check(dtrain_mem_register(context, &params, &memory));
}

static void barrier(void *comm) { check(dtrain_barrier(comm, NULL, NULL)); }

int main(int argc, char **argv) {
    const int shared = getenv("BENCH_SHARED") != NULL;
    dtrain_comm_t *comm;
    check(dtrain_context_create(DTRAIN_API_VERSION, NULL, &context));
    check(dtrain_comm_create(context, NULL, NULL, &comm));
    const contender_t contender = {.name = shared ? "dtrain-shared" : "dtrain",
                                   .version = dtrain_version_string(),
                                   .rank = dtrain_comm_rank(comm),
                                   .size = dtrain_comm_size(comm),
                                   .self = comm,
                                   .prepare = shared ? share : NULL,
                                   .allreduce = allreduce,
                                   .exchange = allreduce,
                                   .barrier = barrier};
    const int result = harness_run(&contender, argc, argv);
    check(dtrain_mem_deregister(memory));
    check(dtrain_comm_destroy(comm));
    check(dtrain_context_destroy(context));
    return result;
}
