/* A job for test_trace.py: collectives of several kinds, blocking and not, messages, a table.
 * usage: traced ROUNDS [PATH]: 0 rounds: until it is killed; PATH: a timeline started by the API.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtrain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 50000, IN_FLIGHT = 3 };

static void must(dtrain_status_t status, const char *what) {
    char text[512];
    if (status == DTRAIN_OK) return;
    dtrain_last_error(text, sizeof text);
    fprintf(stderr, "%s: %s\n", what, text);
    exit(EXIT_FAILURE);
}
#define MUST(call) must((call), #call)

static void one_round(dtrain_comm_t *comm, dtrain_table_t *table) {
    static float buffers[IN_FLIGHT][COUNT], all[4 * COUNT];
    dtrain_request_t *requests[IN_FLIGHT];
    const int rank = dtrain_comm_rank(comm), peer = rank ^ 1;
    for (int i = 0; i < IN_FLIGHT; i++)
        MUST(dtrain_allreduce(comm, buffers[i], buffers[i], COUNT, DTRAIN_F32, DTRAIN_SUM, NULL,
                              &requests[i]));
    for (int i = 0; i < IN_FLIGHT; i++) {
        MUST(dtrain_request_wait(requests[i], -1));
        dtrain_request_free(requests[i]);
    }
    MUST(dtrain_allreduce(comm, buffers[0], buffers[0], 16, DTRAIN_F32, DTRAIN_SUM, NULL, NULL));
    MUST(dtrain_broadcast(comm, buffers[0], COUNT, DTRAIN_F32, 1, NULL, NULL));
    MUST(dtrain_allgather(comm, buffers[0], all, COUNT, DTRAIN_F32, NULL, NULL));
    MUST(dtrain_recv(comm, all, 100, DTRAIN_F32, peer, 7, NULL, &requests[0]));
    MUST(dtrain_send(comm, buffers[0], 100, DTRAIN_F32, peer, 7, NULL, NULL));
    MUST(dtrain_request_wait(requests[0], -1));
    dtrain_request_free(requests[0]);
    MUST(dtrain_table_push(table, 0, 10, buffers[0], NULL, NULL));
    MUST(dtrain_table_pull(table, 0, 10, buffers[0], NULL, NULL));
    MUST(dtrain_barrier(comm, NULL, NULL));
}

int main(int argc, char **argv) {
    dtrain_context_t *context = NULL;
    dtrain_comm_t *comm = NULL;
    dtrain_table_t *table = NULL;
    dtrain_table_params_t params;
    const int rounds = argc > 1 ? atoi(argv[1]) : 1;
    MUST(dtrain_context_create(DTRAIN_API_VERSION, NULL, &context));
    MUST(dtrain_comm_create(context, NULL, NULL, &comm));
    DTRAIN_INIT(&params);
    params.length = 1000;
    params.dtype = DTRAIN_F32;
    MUST(dtrain_table_create(comm, "the \"odd\"\n\\name", &params, &table));
    if (argc > 2) MUST(dtrain_timeline_start(context, argv[2]));
    if (argc > 2 && dtrain_timeline_start(context, argv[2]) != DTRAIN_ERR_STATE) return 3;
    for (int i = 0; i < rounds || rounds == 0; i++) {
        MUST(dtrain_timeline_mark(context, "epoch \"\x01\t\xff\xc3\xa9\""));
        one_round(comm, table);
        if (i == 0) printf("working\n"), fflush(stdout);
    }
    if (argc > 2) MUST(dtrain_timeline_stop(context));
    one_round(comm, table);
    dtrain_table_destroy(table);
    MUST(dtrain_comm_destroy(comm));
    MUST(dtrain_context_destroy(context));
    return EXIT_SUCCESS;
}
