/* How long a small all-reduce takes while a large one is in flight, by its priority; and a small
 * push while a large one of another table is. usage: dtrain-run -n N -- bench_priority [LARGE
 * [SMALL]] (bytes); prints medians of rank 0.
 * SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

enum { ROUNDS = 31 };

typedef struct buffer {
    float *at;
    uint64_t bytes;
    dtrain_table_t *table; /* NULL: it is reduced */
} buffer_t;

static buffer_t make_buffer(uint64_t bytes) {
    buffer_t buffer = {calloc(1, bytes), bytes, NULL};
    if (buffer.at == NULL) exit(EXIT_FAILURE);
    return buffer;
}

static void make_table(dtrain_comm_t *comm, buffer_t *buffer) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.length = buffer->bytes / sizeof *buffer->at;
    MUST(dtrain_table_create(comm, "table", &params, &buffer->table));
}

static dtrain_request_t *start(dtrain_comm_t *comm, buffer_t buffer, int32_t priority) {
    const uint64_t count = buffer.bytes / sizeof *buffer.at;
    dtrain_request_t *request = NULL;
    dtrain_op_params_t params;
    DTRAIN_INIT(&params);
    params.priority = priority;
    if (buffer.table != NULL)
        MUST(dtrain_table_push(buffer.table, 0, count, buffer.at, &params, &request));
    else
        MUST(dtrain_allreduce(comm, buffer.at, buffer.at, count, DTRAIN_F32, DTRAIN_MAX, &params,
                              &request));
    return request;
}

static double end(dtrain_request_t *request, double begun_us) {
    MUST(dtrain_request_wait(request, -1));
    const double us = now_us() - begun_us;
    dtrain_request_free(request);
    return us;
}

/* Prints the times of the small one and of the large one, if there are any. */
static void measure(dtrain_comm_t *comm, const char *name, buffer_t large, buffer_t small,
                    int32_t low, int32_t high) {
    double small_us[ROUNDS], large_us[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        MUST(dtrain_barrier(comm, NULL, NULL));
        const double begin = now_us();
        dtrain_request_t *first = large.bytes > 0 ? start(comm, large, low) : NULL;
        const double then = now_us();
        small_us[i] = small.bytes > 0 ? end(start(comm, small, high), then) : 0;
        large_us[i] = first != NULL ? end(first, begin) : 0;
    }
    sort(small_us, ROUNDS);
    sort(large_us, ROUNDS);
    if (dtrain_comm_rank(comm) == 0)
        printf("%-12s%-28s small %9.0f us, large %9.0f us\n",
               large.table != NULL || small.table != NULL ? "push" : "all-reduce", name,
               small_us[ROUNDS / 2], large_us[ROUNDS / 2]);
}

static const buffer_t none;

static void measure_without(dtrain_comm_t *comm, buffer_t large, buffer_t small) {
    measure(comm, "alone", none, small, 0, 0);
    measure(comm, "alone", large, none, 0, 0);
    measure(comm, "together, same priority", large, small, 0, 0);
}

static void measure_with(dtrain_comm_t *comm, buffer_t large, buffer_t small) {
    measure(comm, "together, small one higher", large, small, 0, 1);
    measure(comm, "alone, after that", large, none, 0, 0);
}

int main(int argc, char **argv) {
    dtrain_context_t *context = NULL;
    dtrain_comm_t *comm = NULL;
    MUST(dtrain_context_create(DTRAIN_API_VERSION, NULL, &context));
    MUST(dtrain_comm_create(context, NULL, NULL, &comm));
    buffer_t large = make_buffer(argc > 1 ? strtoull(argv[1], NULL, 10) : 64 << 20);
    buffer_t small = make_buffer(argc > 2 ? strtoull(argv[2], NULL, 10) : 256 << 10);
    const buffer_t large_sum = large, small_sum = small;
    make_table(comm, &large);
    make_table(comm, &small);
    measure_without(comm, large_sum, small_sum);
    measure_without(comm, large, small);
    /* From here on the context knows of priorities. */
    measure_with(comm, large_sum, small_sum);
    measure_with(comm, large, small);
    MUST(dtrain_table_destroy(large.table));
    MUST(dtrain_table_destroy(small.table));
    free(large.at);
    free(small.at);
    MUST(dtrain_comm_destroy(comm));
    MUST(dtrain_context_destroy(context));
    return EXIT_SUCCESS;
}
