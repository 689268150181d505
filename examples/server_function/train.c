/* Fits rows of a sparse table to targets by the servers' own update rule, clipped_adagrad.c. The
 * workers name it; the servers have been told where it is (ps.functions):
 *     DTRAIN_PS_FUNCTIONS=/path/to/libclipped_adagrad.so dtrain-run -n 2 -s 2 ./train
 * SPDX-License-Identifier: Apache-2.0 */
#include <dtrain.h>
#include <math.h>
#include <stdio.h>

enum { ROWS = 100, DIM = 8, STEPS = 400 };

static int failed(const char *what) {
    char text[512];
    dtrain_last_error(text, sizeof text);
    return fprintf(stderr, "%s: %s\n", what, text), 1;
}

int main(void) {
    dtrain_context_t *context;
    dtrain_comm_t *comm;
    dtrain_table_t *table;
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.dim = DIM;
    params.rule = DTRAIN_RULE_FUNCTION;
    params.function = "clipped_adagrad";
    params.learning_rate = 0.5;
    params.clip_norm = 1;
    if (dtrain_context_create(DTRAIN_API_VERSION, NULL, &context) != DTRAIN_OK ||
        dtrain_comm_create(context, NULL, NULL, &comm) != DTRAIN_OK)
        return failed("join");
    if (dtrain_table_create(comm, "rows", &params, &table) != DTRAIN_OK) return failed("table");

    static float w[ROWS][DIM], g[ROWS][DIM];
    uint64_t keys[ROWS];
    for (uint64_t i = 0; i < ROWS; i++) keys[i] = i * i;
    float worst = 0;
    for (int step = 0; step <= STEPS; step++) {
        if (dtrain_table_pull_rows(table, keys, ROWS, w, NULL, NULL) != DTRAIN_OK)
            return failed("pull");
        worst = 0;
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < DIM; j++) {
                g[i][j] = w[i][j] - (float)(i % 7 - j); /* of half the squared distance */
                worst = fmaxf(worst, fabsf(g[i][j]));
            }
        if (step < STEPS && dtrain_table_push_rows(table, keys, ROWS, g, NULL, NULL) != DTRAIN_OK)
            return failed("push");
    }
    printf("rank %d: after %d steps no number is farther off than %.3g\n", dtrain_comm_rank(comm),
           STEPS, worst);
    dtrain_table_destroy(table);
    dtrain_comm_destroy(comm);
    return dtrain_context_destroy(context) != DTRAIN_OK || !(worst < 0.05F);
}
