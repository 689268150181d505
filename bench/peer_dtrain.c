/* dtrain in the comparison.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtrain.h"
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>

static dtrain_context_t *context;
static dtrain_mem_t *memory[2];

static void check(dtrain_status_t status) {
    char text[512];
    if (status == DTRAIN_OK) return;
    dtrain_last_error(text, sizeof text);
    fprintf(stderr, "dtrain: %s (%s)\n", text, dtrain_status_name(status));
    exit(EXIT_FAILURE);
}

static void exchange(void *comm, float *values, size_t count) {
    check(dtrain_allreduce(comm, values, values, count, DTRAIN_F32, DTRAIN_SUM, NULL, NULL));
}

static void send_and_return(dtrain_comm_t *comm, float *send, float *recv, size_t count) {
    const int rank = dtrain_comm_rank(comm);
    if (rank > 1) return;
    if (rank == 0) check(dtrain_send(comm, send, count, DTRAIN_F32, 1, 0, NULL, NULL));
    check(dtrain_recv(comm, recv, count, DTRAIN_F32, 1 - rank, 0, NULL, NULL));
    if (rank == 1) check(dtrain_send(comm, recv, count, DTRAIN_F32, 0, 0, NULL, NULL));
}

static void run(void *self, kind_t kind, float *send, float *recv, size_t count) {
    dtrain_comm_t *comm = self;
    const size_t block = count / (size_t)dtrain_comm_size(comm);
    const uint32_t type = DTRAIN_F32, sum = DTRAIN_SUM;
    switch (kind) {
    case ALLREDUCE: exchange(comm, recv, count); break;
    case REDUCE_SCATTER:
        check(dtrain_reduce_scatter(comm, send, recv, block, type, sum, NULL, NULL));
        break;
    case ALLGATHER: check(dtrain_allgather(comm, send, recv, block, type, NULL, NULL)); break;
    case BROADCAST: check(dtrain_broadcast(comm, recv, count, type, 0, NULL, NULL)); break;
    case REDUCE: check(dtrain_reduce(comm, send, recv, count, type, sum, 0, NULL, NULL)); break;
    case ALLTOALL: check(dtrain_alltoall(comm, send, recv, block, type, NULL, NULL)); break;
    case SENDRECV: send_and_return(comm, send, recv, count); break;
    default: check(dtrain_barrier(comm, NULL, NULL)); break;
    }
}

/* Moves the buffers into memory that all ranks map (BENCH_SHARED). */
static void share(void *self, kind_t kind, float *send, float *recv, size_t count) {
    (void)self;
    float *const buffers[] = {recv, send};
    for (int i = 0; i < 2; i++) check(dtrain_mem_deregister(memory[i]));
    for (int i = 0; i < (kind == ALLREDUCE || kind == BROADCAST ? 1 : 2); i++) {
        dtrain_mem_params_t params;
        DTRAIN_INIT(&params);
        params.address = buffers[i];
        params.length = count * sizeof(float);
        params.flags = DTRAIN_MEM_SHARED;
        check(dtrain_mem_register(context, &params, &memory[i]));
    }
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
                                   .run = run,
                                   .exchange = exchange,
                                   .barrier = barrier};
    const int result = harness_run(&contender, argc, argv);
    for (int i = 0; i < 2; i++) check(dtrain_mem_deregister(memory[i]));
    check(dtrain_comm_destroy(comm));
    check(dtrain_context_destroy(context));
    return result;
}
