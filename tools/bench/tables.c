/* The operations push and pull, on an asynchronous table with the rule ADD.
 * SPDX-License-Identifier: Apache-2.0 */
#include "operation.h"

/* Largest exact sum of ones in f32; beyond it the sum stays the same. */
static const double exact = 16777216;

dtrain_status_t table_open(bench_t *bench, const char *name) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.length = bench->count;
    params.initial = 1;
    bench->pushed = 0;
    for (size_t i = 0; i < bench->count; i++) ((float *)bench->send)[i] = 1;
    return dtrain_table_create(bench->comm, name, &params, &bench->table);
}

dtrain_status_t run_push(bench_t *bench) {
    bench->pushed++;
    return dtrain_table_push(bench->table, 0, bench->count, bench->send, NULL, NULL);
}

dtrain_status_t run_pull(bench_t *bench) {
    return dtrain_table_pull(bench->table, 0, bench->count, bench->recv, NULL, NULL);
}

dtrain_status_t run_push_pull(bench_t *bench) {
    bench->pushed++;
    return dtrain_table_push_pull(bench->table, 0, bench->count, bench->send, bench->recv, NULL,
                                  NULL);
}

dtrain_status_t table_read(bench_t *bench) {
    dtrain_status_t status = dtrain_barrier(bench->comm, NULL, NULL);
    if (status == DTRAIN_OK) status = run_pull(bench);
    return status == DTRAIN_OK ? dtrain_barrier(bench->comm, NULL, NULL) : status;
}

double expected_table(const bench_t *bench, size_t i, int sample) {
    (void)i;
    (void)sample;
    const double sum = 1 + (double)bench->pushed * bench->size;
    return sum < exact ? sum : exact;
}
