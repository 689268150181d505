/* A program as a user writes it: one rank, one all-reduce. Prints the library's version and the
 * transports that it opened.
 * SPDX-License-Identifier: Apache-2.0 */
#include <dtrain.h>
#include <stdio.h>
#include <stdlib.h>

static void must(dtrain_status_t status, const char *what) {
    char text[512];
    if (status == DTRAIN_OK) return;
    dtrain_last_error(text, sizeof text);
    fprintf(stderr, "%s: %s\n", what, text);
    exit(1);
}

int main(void) {
    dtrain_context_t *context;
    dtrain_comm_t *comm;
    dtrain_comm_params_t params;
    float send[4] = {1, 2, 3, 4}, recv[4] = {0, 0, 0, 0};
    char description[16384];
    must(dtrain_context_create(DTRAIN_API_VERSION, NULL, &context), "context");
    DTRAIN_INIT(&params);
    params.size = 1;
    must(dtrain_comm_create(context, "env", &params, &comm), "comm");
    must(dtrain_allreduce(comm, send, recv, 4, DTRAIN_F32, DTRAIN_SUM, NULL, NULL), "allreduce");
    if (memcmp(send, recv, sizeof send) != 0) return 2;
    dtrain_context_describe(context, description, sizeof description);
    printf("%s\n%s\n", dtrain_version_string(), description);
    must(dtrain_comm_destroy(comm), "comm");
    must(dtrain_context_destroy(context), "context");
    return 0;
}
