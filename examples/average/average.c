/* SPDX-License-Identifier: Apache-2.0 */
#include <dtrain.h>
#include <stdio.h>

int main(void) {
    dtrain_context_t *context;
    dtrain_comm_t *comm;
    char error[512];
    if (dtrain_context_create(DTRAIN_API_VERSION, NULL, &context) != DTRAIN_OK ||
        dtrain_comm_create(context, NULL, NULL, &comm) != DTRAIN_OK) { /* who am I: environment */
        dtrain_last_error(error, sizeof error);
        return fprintf(stderr, "%s\n", error), 1;
    }
    float gradient[] = {1, (float)dtrain_comm_rank(comm)};
    if (dtrain_allreduce(comm, gradient, gradient, 2, DTRAIN_F32, DTRAIN_AVG, NULL, NULL) !=
        DTRAIN_OK)
        return 1;
    printf("rank %d of %d: %g\n", dtrain_comm_rank(comm), dtrain_comm_size(comm), gradient[1]);
    dtrain_comm_destroy(comm);
    dtrain_context_destroy(context);
    return 0;
}
