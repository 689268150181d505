/* A C rank of a job of several languages: an all-reduce, and a table.
 * SPDX-License-Identifier: Apache-2.0 */
#include <dtrain.h>
#include <stdio.h>
#include <stdlib.h>

enum { LENGTH = 1000 };

static void check(dtrain_status_t status) {
    char text[512];
    if (status == DTRAIN_OK) return;
    dtrain_last_error(text, sizeof text);
    fprintf(stderr, "%s: %s\n", dtrain_status_name(status), text);
    exit(EXIT_FAILURE);
}

int main(void) {
    static float vector[LENGTH], values[LENGTH];
    dtrain_context_t *context;
    dtrain_comm_t *world;
    dtrain_table_t *table;
    dtrain_table_params_t params;
    check(dtrain_context_create(DTRAIN_API_VERSION, NULL, &context));
    check(dtrain_comm_create(context, NULL, NULL, &world));
    const int rank = dtrain_comm_rank(world), size = dtrain_comm_size(world);
    const float ranks = (float)(size * (size + 1) / 2); /* sum of rank + 1 */
    for (int i = 0; i < LENGTH; i++) {
        vector[i] = (float)(rank + 1 + i);
        values[i] = (float)(rank + 1);
    }
    check(dtrain_allreduce(world, vector, vector, LENGTH, DTRAIN_F32, DTRAIN_SUM, NULL, NULL));
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.length = LENGTH;
    params.rule = DTRAIN_RULE_ADD;
    params.consistency = DTRAIN_BSP;
    check(dtrain_table_create(world, "shared", &params, &table));
    check(dtrain_table_push(table, 0, LENGTH, values, NULL, NULL));
    check(dtrain_table_clock(table, NULL, NULL));
    check(dtrain_table_pull(table, 0, LENGTH, values, NULL, NULL));
    printf("C rank %d of %d: sum %.1f pulled %.1f\n", rank, size, vector[10], values[10]);
    for (int i = 0; i < LENGTH; i++)
        if (vector[i] != ranks + (float)(size * i) || values[i] != ranks) return EXIT_FAILURE;
    check(dtrain_table_destroy(table));
    check(dtrain_comm_destroy(world));
    check(dtrain_context_destroy(context));
    return EXIT_SUCCESS;
}
