/* Two ranks, each a thread with a context of its own: an all-reduce over the transport of option
 * "transports", and a table whose rule is the function of "ps.functions". Both are in the
 * environment, as are the folders. usage: job RENDEZVOUS
 * SPDX-License-Identifier: Apache-2.0 */
#include <dtrain.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const char *rendezvous;

static void ok(dtrain_status_t status, const char *what) {
    char text[1024];
    if (status == DTRAIN_OK) return;
    dtrain_last_error(text, sizeof text);
    fprintf(stderr, "%s: %s\n", what, text);
    exit(1);
}

static void *run(void *rank) {
    enum { COUNT = 100000 };
    float *sum = calloc(COUNT, sizeof *sum), row[4] = {1, 0, 0, 0};
    dtrain_context_t *context;
    dtrain_comm_t *comm;
    dtrain_comm_params_t joining;
    dtrain_table_params_t params;
    dtrain_table_t *table;
    ok(dtrain_context_create(DTRAIN_API_VERSION, NULL, &context), "context");
    DTRAIN_INIT(&joining);
    joining.size = 2;
    joining.rank = *(int *)rank;
    ok(dtrain_comm_create(context, rendezvous, &joining, &comm), "comm");
    for (int i = 0; i < COUNT; i++) sum[i] = 1;
    ok(dtrain_allreduce(comm, sum, sum, COUNT, DTRAIN_F32, DTRAIN_SUM, NULL, NULL), "allreduce");
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.dim = 4;
    params.rule = DTRAIN_RULE_FUNCTION;
    params.function = "clipped_adagrad";
    params.learning_rate = 1;
    params.epsilon = 1e-6;
    const uint64_t key = 7;
    ok(dtrain_table_create(comm, "t", &params, &table), "table");
    if (joining.rank == 0) ok(dtrain_table_push_rows(table, &key, 1, row, NULL, NULL), "push");
    ok(dtrain_barrier(comm, NULL, NULL), "barrier");
    ok(dtrain_table_pull_rows(table, &key, 1, row, NULL, NULL), "pull");
    ok(dtrain_barrier(comm, NULL, NULL), "barrier");
    if (sum[0] != 2 || sum[COUNT - 1] != 2 || row[0] > -0.99F || row[1] != 0) {
        fprintf(stderr, "rank %d: %g and %g\n", joining.rank, (double)sum[0], (double)row[0]);
        exit(1);
    }
    ok(dtrain_table_destroy(table), "table");
    ok(dtrain_comm_destroy(comm), "comm");
    ok(dtrain_context_destroy(context), "context");
    free(sum);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t other;
    int ranks[2] = {0, 1};
    if (argc != 2) return 2;
    rendezvous = argv[1];
    if (pthread_create(&other, NULL, run, &ranks[1]) != 0) return 1;
    run(&ranks[0]);
    return pthread_join(other, NULL);
}
