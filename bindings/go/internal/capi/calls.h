/* One operation: from its parameters to its outcome, within one call from Go, since memory of Go's
 * must not be used after it. Only operations on C's own memory may outlast it (CALL_START).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTRAIN_GO_CALLS_H
#define DTRAIN_GO_CALLS_H
#include <dtrain.h>

/* What a call failed with; for failure_free(). */
typedef struct Failure {
    int32_t status, rank;
    char text[2048];
} Failure;

enum { CALL_BLOCK = 0, CALL_START = 1 };
typedef struct Call {
    dtrain_op_params_t params;
    uint32_t mode;             /* CALL_*                                                          */
    uint32_t canceled;         /* out: the caller's wish ended it,                                */
    uint32_t aborted;          /* by aborting comm                                                */
    const uint32_t *cancel;    /* becomes 1 when the caller does not want to wait longer, or NULL */
    dtrain_comm_t *comm;       /* aborted then if the operation cannot be cancelled, or NULL      */
    dtrain_request_t *request; /* out: of CALL_START                                              */
    dtrain_event_t event;      /* out: of CALL_BLOCK                                              */
} Call;

/* NULL for success; else with the text of this thread's last failed call. */
Failure *failure_of(dtrain_status_t status);
void failure_free(Failure *failure);

/* What the call is posted with; NULL is a Call without wishes. */
const dtrain_op_params_t *call_params(Call *call);
/* Waits for what was posted, or hands it over. */
Failure *call_end(Call *call, dtrain_request_t *request);

#endif
