/* Small all-reduces of two ranks, for test_instructions.py to count.
 * usage: small_calls CALLS [varied]: varied takes another buffer for each call.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtrain.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    static float buffers[64][2];
    const int calls = argc > 1 ? atoi(argv[1]) : 1, varied = argc > 2;
    dtrain_context_t *context = NULL;
    dtrain_comm_t *comm = NULL;
    char text[512];
    if (dtrain_context_create(DTRAIN_API_VERSION, NULL, &context) != DTRAIN_OK ||
        dtrain_comm_create(context, NULL, NULL, &comm) != DTRAIN_OK) {
        dtrain_last_error(text, sizeof text);
        fprintf(stderr, "%s\n", text);
        return EXIT_FAILURE;
    }
    for (int i = 0; i < calls; i++) {
        float *buffer = buffers[varied ? i % 64 : 0];
        if (dtrain_allreduce(comm, buffer, buffer, 2, DTRAIN_F32, DTRAIN_MAX, NULL, NULL) !=
            DTRAIN_OK)
            return EXIT_FAILURE;
    }
    dtrain_comm_destroy(comm);
    dtrain_context_destroy(context);
    return EXIT_SUCCESS;
}
