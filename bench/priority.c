/* How long a small all-reduce takes while a large one is in flight, by its priority.
 * usage: dtrain-run -n N -- bench_priority [LARGE [SMALL]] (bytes); prints medians of rank 0.
 * SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

enum { ROUNDS = 31 };

typedef struct buffer {
    float *at;
    uint64_t bytes;
} buffer_t;

static buffer_t make_buffer(uint64_t bytes) {
    buffer_t buffer = {calloc(1, bytes), bytes};
    if (buffer.at == NULL) exit(EXIT_FAILURE);
    return buffer;
}

static dtrain_request_t *start(dtrain_comm_t *comm, buffer_t buffer, int32_t priority) {
    dtrain_request_t *request = NULL;
    dtrain_op_params_t params;
    DTRAIN_INIT(&params);
    params.priority = priority;
    MUST(dtrain_allreduce(comm, buffer.at, buffer.at, buffer.bytes / sizeof *buffer.at, DTRAIN_F32,
                          DTRAIN_MAX, &params, &request));
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
        printf("%-28s small %9.0f us, large %9.0f us\n", name, small_us[ROUNDS / 2],
               large_us[ROUNDS / 2]);
}

int main(int argc, char **argv) {
    dtrain_context_t *context = NULL;
    dtrain_comm_t *comm = NULL;
    const buffer_t none = {NULL, 0};
    MUST(dtrain_context_create(DTRAIN_API_VERSION, NULL, &context));
    MUST(dtrain_comm_create(context, NULL, NULL, &comm));
    const buffer_t large = make_buffer(argc > 1 ? strtoull(argv[1], NULL, 10) : 64 << 20);
    const buffer_t small = make_buffer(argc > 2 ? strtoull(argv[2], NULL, 10) : 256 << 10);
    measure(comm, "alone", none, small, 0, 0);
    measure(comm, "alone", large, none, 0, 0);
    measure(comm, "together, same priority", large, small, 0, 0);
    /* From here on the context knows of priorities. */
    measure(comm, "together, small one higher", large, small, 0, 1);
    measure(comm, "alone, after that", large, none, 0, 0);
    free(large.at);
    free(small.at);
    MUST(dtrain_comm_destroy(comm));
    MUST(dtrain_context_destroy(context));
    return EXIT_SUCCESS;
}
