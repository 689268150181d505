/* Small all-reduces or messages of two ranks, for test_instructions.py to count.
 * usage: small_calls CALLS [varied|messages]: varied takes another buffer for each all-reduce,
 * messages sends 1 KiB there and back.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtrain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int send_and_return(dtrain_comm_t *comm) {
    static char message[1024];
    const int first = dtrain_comm_rank(comm) == 0, other = first;
    for (int turn = 0; turn < 2; turn++) {
        const dtrain_status_t status =
            (turn == 0) == first
                ? dtrain_send(comm, message, sizeof message, DTRAIN_U8, other, 0, NULL, NULL)
                : dtrain_recv(comm, message, sizeof message, DTRAIN_U8, other, 0, NULL, NULL);
        if (status != DTRAIN_OK) return 0;
    }
    return 1;
}

int main(int argc, char **argv) {
    static float buffers[64][2];
    const int calls = argc > 1 ? atoi(argv[1]) : 1;
    const int varied = argc > 2 && strcmp(argv[2], "varied") == 0;
    const int messages = argc > 2 && strcmp(argv[2], "messages") == 0;
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
        if (messages) {
            if (!send_and_return(comm)) return EXIT_FAILURE;
            continue;
        }
        float *buffer = buffers[varied ? i % 64 : 0];
        if (dtrain_allreduce(comm, buffer, buffer, 2, DTRAIN_F32, DTRAIN_MAX, NULL, NULL) !=
            DTRAIN_OK)
            return EXIT_FAILURE;
    }
    dtrain_comm_destroy(comm);
    dtrain_context_destroy(context);
    return EXIT_SUCCESS;
}
