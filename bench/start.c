/* The smallest job: joins, makes its communicator, meets the others once, and ends.
 *
 * usage: time dtrain-run -n N -- bench_start
 *
 * With the argument "times" each rank prints when it began and when all had met, in ns.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <inttypes.h>

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int main(int argc, char **argv) {
    const int64_t begun = now_ns();
    dtrain_context_t *context = NULL;
    dtrain_comm_t *comm = NULL;
    (void)argv;
    MUST(dtrain_context_create(DTRAIN_API_VERSION, NULL, &context));
    MUST(dtrain_comm_create(context, NULL, NULL, &comm));
    MUST(dtrain_barrier(comm, NULL, NULL));
    if (argc > 1) printf("began %" PRId64 " met %" PRId64 "\n", begun, now_ns());
    MUST(dtrain_comm_destroy(comm));
    MUST(dtrain_context_destroy(context));
    return 0;
}
