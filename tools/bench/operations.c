/* The table of operations, with the results that each must have.
 * SPDX-License-Identifier: Apache-2.0 */
#include "operation.h"

#include "pattern.h"

#define DTYPE bench->options->dtype
#define OP    bench->options->op

static dtrain_status_t run_allreduce(bench_t *bench) {
    const void *send = bench->options->in_place ? bench->recv : bench->send;
    return dtrain_allreduce(bench->comm, send, bench->recv, bench->count, DTYPE, OP, NULL, NULL);
}

static dtrain_status_t run_reduce(bench_t *bench) {
    return dtrain_reduce(bench->comm, bench->send, bench->recv, bench->count, DTYPE, OP, 0, NULL,
                         NULL);
}

static dtrain_status_t run_reduce_scatter(bench_t *bench) {
    return dtrain_reduce_scatter(bench->comm, bench->send, bench->recv, bench->block, DTYPE, OP,
                                 NULL, NULL);
}

static dtrain_status_t run_allgather(bench_t *bench) {
    return dtrain_allgather(bench->comm, bench->send, bench->recv, bench->block, DTYPE, NULL, NULL);
}

static dtrain_status_t run_broadcast(bench_t *bench) {
    return dtrain_broadcast(bench->comm, bench->recv, bench->count, DTYPE, 0, NULL, NULL);
}

static dtrain_status_t run_gather(bench_t *bench) {
    return dtrain_gather(bench->comm, bench->send, bench->recv, bench->block, DTYPE, 0, NULL, NULL);
}

static dtrain_status_t run_scatter(bench_t *bench) {
    return dtrain_scatter(bench->comm, bench->send, bench->recv, bench->block, DTYPE, 0, NULL,
                          NULL);
}

static dtrain_status_t run_alltoall(bench_t *bench) {
    return dtrain_alltoall(bench->comm, bench->send, bench->recv, bench->block, DTYPE, NULL, NULL);
}

static dtrain_status_t run_barrier(bench_t *bench) {
    return dtrain_barrier(bench->comm, NULL, NULL);
}

/* Between the first and the last rank; the others do nothing. */
static dtrain_status_t run_sendrecv(bench_t *bench) {
    const int peer = bench->rank == 0 ? bench->size - 1 : 0;
    const void *first = bench->rank == 0 ? bench->send : bench->recv;
    dtrain_status_t status = DTRAIN_OK;
    if (bench->rank != 0 && bench->rank != bench->size - 1) return DTRAIN_OK;
    if (bench->rank == 0)
        status = dtrain_send(bench->comm, first, bench->count, DTYPE, peer, 0, NULL, NULL);
    if (status == DTRAIN_OK)
        status = dtrain_recv(bench->comm, bench->recv, bench->count, DTYPE, peer, 0, NULL, NULL);
    if (status == DTRAIN_OK && bench->rank != 0)
        status = dtrain_send(bench->comm, first, bench->count, DTYPE, peer, 0, NULL, NULL);
    return status;
}

static double reduced(const bench_t *bench, size_t i, int sample) {
    int result = pattern_value(i, 0, sample);
    for (int rank = 1; rank < bench->size; rank++) {
        const int value = pattern_value(i, rank, sample);
        if (OP == DTRAIN_SUM || OP == DTRAIN_AVG)
            result += value;
        else if ((OP == DTRAIN_MIN) == (value < result))
            result = value;
    }
    if (OP != DTRAIN_AVG) return result;
    return DTYPE <= DTRAIN_BF16 ? (double)result / bench->size : result / bench->size;
}

static double reduced_block(const bench_t *bench, size_t i, int sample) {
    return reduced(bench, (size_t)bench->rank * bench->block + i, sample);
}

static double gathered(const bench_t *bench, size_t i, int sample) {
    return pattern_value(i % bench->block, (int)(i / bench->block), sample);
}

static double from_root(const bench_t *bench, size_t i, int sample) {
    (void)bench;
    return pattern_value(i, 0, sample);
}

static double scattered(const bench_t *bench, size_t i, int sample) {
    return pattern_value((size_t)bench->rank * bench->block + i, 0, sample);
}

static double exchanged(const bench_t *bench, size_t i, int sample) {
    return pattern_value((size_t)bench->rank * bench->block + i % bench->block,
                         (int)(i / bench->block), sample);
}

static size_t all(const bench_t *bench) { return bench->count; }
static size_t own_block(const bench_t *bench) { return bench->block; }
static size_t on_root(const bench_t *bench) { return bench->rank == 0 ? bench->count : 0; }
static size_t on_both_ends(const bench_t *bench) {
    return bench->rank == 0 || bench->rank == bench->size - 1 ? bench->count : 0;
}

const operation_t operations[] = {
    {"allreduce", 0, run_allreduce, reduced, all},
    {"reduce", 0, run_reduce, reduced, on_root},
    {"reduce_scatter", BLOCKS, run_reduce_scatter, reduced_block, own_block},
    {"allgather", BLOCKS, run_allgather, gathered, all},
    {"broadcast", 0, run_broadcast, from_root, all},
    {"gather", BLOCKS, run_gather, gathered, on_root},
    {"scatter", BLOCKS, run_scatter, scattered, own_block},
    {"alltoall", BLOCKS, run_alltoall, exchanged, all},
    {"barrier", SIZELESS, run_barrier, NULL, NULL},
    {"sendrecv", PAIR, run_sendrecv, from_root, on_both_ends},
    {"push", TABLE, run_push, expected_table, all},
    {"pull", TABLE, run_pull, expected_table, all},
    {"push_pull", TABLE, run_push_pull, expected_table, all},
    {NULL, 0, NULL, NULL, NULL},
};
