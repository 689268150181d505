/* SPDX-License-Identifier: Apache-2.0 */
#include "calls.h"

#include <stdlib.h>

static Failure no_memory = {DTRAIN_ERR_NO_MEMORY, -1, "no memory for the text of an error"};

Failure *failure_of(dtrain_status_t status) {
    if (status == DTRAIN_OK) return NULL;
    Failure *failure = (Failure *)malloc(sizeof *failure);
    if (failure == NULL) return &no_memory;
    failure->status = status;
    failure->rank = -1;
    failure->text[0] = '\0';
    if (status < 0) dtrain_last_error(failure->text, sizeof failure->text);
    return failure;
}

void failure_free(Failure *failure) {
    if (failure != &no_memory) free(failure);
}

const dtrain_op_params_t *call_params(Call *call) {
    static const dtrain_op_params_t awaited = {.struct_size = sizeof awaited,
                                               .flags = DTRAIN_OP_AWAITED};
    if (call == NULL) return &awaited;
    call->params.struct_size = sizeof call->params;
    if (call->mode == CALL_BLOCK) call->params.flags |= DTRAIN_OP_AWAITED;
    return &call->params;
}

/* Ends the operation as soon as can be: afterwards nobody touches its memory. */
static dtrain_status_t call_cancel(Call *call, dtrain_request_t *request) {
    call->canceled = 1;
    if (dtrain_request_cancel(request) == DTRAIN_ERR_STATE && call->comm != NULL) {
        call->aborted = 1;
        dtrain_comm_abort(call->comm, "a rank's context.Context was canceled meanwhile");
    }
    return dtrain_request_wait(request, -1);
}

static dtrain_status_t call_wait(Call *call, dtrain_request_t *request) {
    const int64_t slice_ns = 20 * 1000 * 1000;
    if (call == NULL || call->cancel == NULL) return dtrain_request_wait(request, -1);
    for (;;) {
        const dtrain_status_t status = dtrain_request_wait(request, slice_ns);
        if (status != DTRAIN_IN_PROGRESS) return status;
        if (__atomic_load_n(call->cancel, __ATOMIC_ACQUIRE) != 0) return call_cancel(call, request);
    }
}

Failure *call_end(Call *call, dtrain_request_t *request) {
    if (call != NULL && call->mode == CALL_START) {
        call->request = request;
        return NULL;
    }
    dtrain_event_t event = {.peer = -1};
    Failure *failure = failure_of(call_wait(call, request));
    if (dtrain_request_result(request, &event) == DTRAIN_OK && failure != NULL &&
        failure != &no_memory) {
        failure->rank = event.peer;
        dtrain_request_error(request, failure->text, sizeof failure->text);
    }
    if (call != NULL) call->event = event;
    dtrain_request_free(request);
    return failure;
}
