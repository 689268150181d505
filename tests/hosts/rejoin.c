/* Joins the environment's job again and again, each time with a context of its own, and sums.
 *
 * usage: rejoin TIMES
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtrain.h"

#include <stdio.h>
#include <stdlib.h>

static int fails(dtrain_status_t status, const char *what) {
    char text[512];
    if (status == DTRAIN_OK) return 0;
    dtrain_last_error(text, sizeof text);
    fprintf(stderr, "%s: %s (%s)\n", what, text, dtrain_status_name(status));
    return 1;
}

static int join_once(void) {
    dtrain_context_t *context = NULL;
    dtrain_comm_t *comm = NULL;
    int64_t rank = 0, sum = -1;
    if (fails(dtrain_context_create(DTRAIN_API_VERSION, NULL, &context), "context")) return 1;
    int failed = fails(dtrain_comm_create(context, NULL, NULL, &comm), "join");
    if (!failed) {
        const int64_t size = dtrain_comm_size(comm);
        rank = dtrain_comm_rank(comm);
        failed = fails(dtrain_allreduce(comm, &rank, &sum, 1, DTRAIN_I64, DTRAIN_SUM, NULL, NULL),
                       "allreduce") ||
                 sum != size * (size - 1) / 2;
        dtrain_comm_destroy(comm);
    }
    dtrain_context_destroy(context);
    return failed;
}

int main(int argc, char **argv) {
    const int times = argc == 2 ? atoi(argv[1]) : 0;
    for (int i = 0; i < times; i++)
        if (join_once()) return EXIT_FAILURE;
    printf("joined %d times\n", times);
    return times > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
