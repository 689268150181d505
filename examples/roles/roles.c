/* Trains a line through points with a chief, workers and servers, while an evaluator measures each
 * checkpoint: every process of the job runs this program, and README.md tells how.
 * SPDX-License-Identifier: Apache-2.0 */
#include <dtrain.h>
#include <stdio.h>
#include <unistd.h>

enum { WEIGHTS = 8, SAMPLES = 64, STEPS = 300, STEPS_PER_CHECKPOINT = 50 };

static int failed(const char *what) {
    char text[512];
    dtrain_last_error(text, sizeof text);
    return fprintf(stderr, "%s: %s\n", what, text), 1;
}

/* The i-th number of a sequence that looks random, from -1 to 1. */
static float noise(uint32_t i) {
    i = (i ^ i >> 16) * 0x45d9f3bU;
    i = (i ^ i >> 16) * 0x45d9f3bU;
    return (float)((i ^ i >> 16) >> 8) / (float)(1 << 23) - 1;
}

/* The mean square of the errors on the samples from `first` on; adds up its gradient. */
static float loss_of(const float *w, uint32_t first, float *gradient) {
    float loss = 0;
    for (uint32_t i = 0; i < SAMPLES; i++) {
        float x[WEIGHTS], error = 0;
        for (uint32_t j = 0; j < WEIGHTS; j++) {
            x[j] = noise((first + i) * WEIGHTS + j);
            error += x[j] * (w[j] - (float)j); /* the true weights are 0, 1, 2, ... */
        }
        loss += error * error / SAMPLES;
        for (int j = 0; j < WEIGHTS; j++) gradient[j] += 2 * error * x[j] / SAMPLES;
    }
    return loss;
}

/* The same for all: with other parameters a checkpoint is refused. */
static dtrain_status_t make_table(dtrain_comm_t *comm, dtrain_table_t **table) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.length = WEIGHTS;
    params.rule = DTRAIN_RULE_SGD;
    params.learning_rate = 0.05;
    params.aggregate = DTRAIN_AVG;
    params.consistency = DTRAIN_BSP;
    return dtrain_table_create(comm, "weights", &params, table);
}

/* The chief continues from the last checkpoint, or sets the first values. */
static dtrain_status_t prepare(dtrain_table_t *table, uint64_t *step) {
    const float first[WEIGHTS] = {0};
    dtrain_status_t status =
        dtrain_checkpoint_restore(&table, 1, DTRAIN_CHECKPOINT_NEWEST, NULL, step);
    if (status == DTRAIN_ERR_NOT_FOUND) {
        *step = 0;
        status = dtrain_table_set(table, 0, WEIGHTS, first, NULL, NULL);
    }
    return status == DTRAIN_OK ? dtrain_table_set_ready(table, NULL, NULL) : status;
}

static int work(dtrain_context_t *context) {
    dtrain_comm_t *comm;
    dtrain_table_t *table;
    dtrain_op_params_t patience;
    uint64_t step = 0;
    DTRAIN_INIT(&patience);
    patience.timeout_ns = INT64_C(60000000000);
    if (dtrain_comm_create(context, NULL, NULL, &comm) != DTRAIN_OK) return failed("join");
    const int rank = dtrain_comm_rank(comm), chief = rank == 0;
    if (make_table(comm, &table) != DTRAIN_OK) return failed("table");
    if (chief && prepare(table, &step) != DTRAIN_OK) return failed("prepare");
    if (dtrain_table_wait_ready(table, &patience, NULL) != DTRAIN_OK) return failed("wait_ready");
    if (dtrain_broadcast(comm, &step, 1, DTRAIN_U64, 0, NULL, NULL) != DTRAIN_OK)
        return failed("broadcast");
    while (step < STEPS) {
        float w[WEIGHTS], gradient[WEIGHTS] = {0};
        if (dtrain_table_pull(table, 0, WEIGHTS, w, NULL, NULL) != DTRAIN_OK) return failed("pull");
        loss_of(w, (uint32_t)rank * SAMPLES, gradient);
        if (dtrain_table_push(table, 0, WEIGHTS, gradient, NULL, NULL) != DTRAIN_OK ||
            dtrain_table_clock(table, NULL, NULL) != DTRAIN_OK)
            return failed("push");
        usleep(5000); /* as if there was more to compute */
        if (++step % STEPS_PER_CHECKPOINT == 0 && chief &&
            dtrain_checkpoint_save(&table, 1, step, NULL, NULL) != DTRAIN_OK)
            return failed("save");
    }
    printf("%s (rank %d): done\n", chief ? "chief" : "worker", rank);
    dtrain_table_destroy(table);
    dtrain_comm_destroy(comm);
    return 0;
}

static int serve(dtrain_context_t *context) {
    dtrain_server_t *server;
    if (dtrain_server_create(context, NULL, NULL, &server) != DTRAIN_OK) return failed("serve");
    if (dtrain_server_wait(server, -1) != DTRAIN_OK) return failed("serve");
    dtrain_server_destroy(server);
    printf("server: done\n");
    return 0;
}

/* In a job of its own, with a table that gets the values of each checkpoint. */
static int evaluate(dtrain_context_t *context) {
    dtrain_comm_t *comm;
    dtrain_table_t *table;
    dtrain_comm_params_t alone;
    dtrain_checkpoint_params_t patience;
    uint64_t step = DTRAIN_CHECKPOINT_NEWEST, newest;
    DTRAIN_INIT(&alone);
    DTRAIN_INIT(&patience);
    alone.size = 1;
    patience.timeout_ns = INT64_C(60000000000);
    if (dtrain_comm_create(context, NULL, &alone, &comm) != DTRAIN_OK) return failed("context");
    if (make_table(comm, &table) != DTRAIN_OK) return failed("table");
    while (step != STEPS) {
        float w[WEIGHTS], ignored[WEIGHTS] = {0};
        if (dtrain_checkpoint_wait(&table, 1, step, &patience, &newest) != DTRAIN_OK)
            return failed("evaluator"); /* the job has ended early, or hangs */
        if (dtrain_checkpoint_restore(&table, 1, newest, NULL, NULL) != DTRAIN_OK) {
            uint64_t newer; /* the job has perhaps removed this one meanwhile (checkpoint.keep) */
            if (failed("restore"),
                dtrain_checkpoint_newest(table, &newer) != DTRAIN_OK || newer == newest)
                return 1;
            continue;
        }
        step = newest;
        if (dtrain_table_pull(table, 0, WEIGHTS, w, NULL, NULL) != DTRAIN_OK) return failed("pull");
        printf("evaluator: step %llu: loss %.6f\n", (unsigned long long)step,
               loss_of(w, 1000 * SAMPLES, ignored)); /* on samples that nobody trains with */
        fflush(stdout);
    }
    dtrain_table_destroy(table);
    dtrain_comm_destroy(comm);
    return 0;
}

int main(void) {
    dtrain_context_t *context;
    uint32_t role;
    if (dtrain_context_create(DTRAIN_API_VERSION, NULL, &context) != DTRAIN_OK ||
        dtrain_join_role(&role) != DTRAIN_OK)
        return failed("role");
    int result = 1;
    switch (role) {
    case DTRAIN_ROLE_WORKER: result = work(context); break;
    case DTRAIN_ROLE_SERVER: result = serve(context); break;
    case DTRAIN_ROLE_EVALUATOR: result = evaluate(context); break;
    default: fprintf(stderr, "role %u is unknown here\n", role);
    }
    dtrain_context_destroy(context);
    return result;
}
