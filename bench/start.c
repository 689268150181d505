/* The smallest job: joins, makes its communicator, meets the others once, and ends.
 * usage: time dtrain-run -n N -- bench_start.
 * SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

int main(void) {
    dtrain_context_t *context = NULL;
    dtrain_comm_t *comm = NULL;
    MUST(dtrain_context_create(DTRAIN_API_VERSION, NULL, &context));
    MUST(dtrain_comm_create(context, NULL, NULL, &comm));
    MUST(dtrain_barrier(comm, NULL, NULL));
    MUST(dtrain_comm_destroy(comm));
    MUST(dtrain_context_destroy(context));
    return 0;
}
