/* What the timeline costs: all-reduces with and without it, in turns.
 * usage: dtrain-run -n N -- timeline [BYTES ...]; prints medians of blocks of calls.
 * SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

enum { BLOCKS = 60 };

/* Microseconds per call of a block. */
static double block(dtrain_comm_t *comm, float *buffer, uint64_t count, int calls) {
    MUST(dtrain_barrier(comm, NULL, NULL));
    const double start = now_us();
    for (int i = 0; i < calls; i++)
        MUST(dtrain_allreduce(comm, buffer, buffer, count, DTRAIN_F32, DTRAIN_MAX, NULL, NULL));
    return (now_us() - start) / calls;
}

static void compare(dtrain_context_t *context, dtrain_comm_t *comm, uint64_t bytes) {
    double off[BLOCKS], on[BLOCKS], ratio[BLOCKS];
    float *buffer = calloc(bytes / sizeof *buffer, sizeof *buffer);
    if (buffer == NULL) exit(EXIT_FAILURE);
    block(comm, buffer, bytes / sizeof *buffer, 10);
    /* 20 ms: the helper's own pace is part of what is measured. */
    double one = block(comm, buffer, bytes / sizeof *buffer, 20);
    MUST(dtrain_broadcast(comm, &one, 1, DTRAIN_F64, 0, NULL, NULL));
    const int calls = one > 20000 ? 1 : (int)(20000 / one);
    for (int i = 0; i < BLOCKS; i++) {
        off[i] = block(comm, buffer, bytes / sizeof *buffer, calls);
        MUST(dtrain_timeline_start(context, "/tmp/dtrain-bench-timeline"));
        on[i] = block(comm, buffer, bytes / sizeof *buffer, calls);
        MUST(dtrain_timeline_stop(context));
        ratio[i] = on[i] / off[i];
    }
    sort(off, BLOCKS);
    sort(on, BLOCKS);
    sort(ratio, BLOCKS);
    if (dtrain_comm_rank(comm) == 0)
        printf("%10llu bytes: off %10.2f us, on %10.2f us, on/off %.3f (quartiles %.3f %.3f)\n",
               (unsigned long long)bytes, off[BLOCKS / 2], on[BLOCKS / 2], ratio[BLOCKS / 2],
               ratio[BLOCKS / 4], ratio[BLOCKS * 3 / 4]);
    free(buffer);
}

int main(int argc, char **argv) {
    dtrain_context_t *context = NULL;
    dtrain_comm_t *comm = NULL;
    char path[64];
    MUST(dtrain_context_create(DTRAIN_API_VERSION, NULL, &context));
    MUST(dtrain_comm_create(context, NULL, NULL, &comm));
    for (int i = 1; i < argc; i++) compare(context, comm, strtoull(argv[i], NULL, 10));
    if (argc == 1) {
        compare(context, comm, 4 << 10);
        compare(context, comm, 64 << 10);
        compare(context, comm, 1 << 20);
    }
    snprintf(path, sizeof path, "/tmp/dtrain-bench-timeline.%d.json", dtrain_comm_rank(comm));
    remove(path);
    MUST(dtrain_comm_destroy(comm));
    MUST(dtrain_context_destroy(context));
    return EXIT_SUCCESS;
}
