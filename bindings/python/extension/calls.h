/* One operation with the memory that it uses: arguments, wait and result. If the request of an
 * unfinished operation is dropped, the operation is kept, with its memory, until it has finished.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTRAIN_PYTHON_CALLS_H
#define DTRAIN_PYTHON_CALLS_H
#include "buffers.h"

enum { MODE_BLOCK = 0, MODE_START = 1, MODE_PREPARE = 2 };
/* Argument names of dtrain.h. Names that never occur in the same call share a slot. */
enum {
    ROLE_send = 0,
    ROLE_values = 0,
    ROLE_pushed = 0,
    ROLE_state = 0,
    ROLE_buffer = 0,
    ROLE_recv = 1,
    ROLE_pulled = 1,
    ROLE_counts = 2,
    ROLE_send_counts = 2,
    ROLE_keys = 2,
    ROLE_items = 2,
    ROLE_displs = 3,
    ROLE_send_displs = 3,
    ROLE_recv_counts = 4,
    ROLE_recv_displs = 5,
    ROLES
};

typedef struct Call {
    dtrain_request_t *request;
    int mode;
    int on_gpu;   /* a buffer is */
    Handle *root; /* the context, which stays in use during a wait */
    PyObject *root_object;
    struct Call *next; /* in the list of abandoned calls */
    uint64_t number;   /* an output of the operation */
    Buffer buffers[ROLES];
} Call;

#define CALL_NAME "dtrain.Request"
static Call *abandoned;
static Call *spare;           /* the last call, cleared, for reuse           */
static PyObject *result_type; /* dtrain.Result */

static Call *call_make(Call **call_p) {
    if (*call_p != NULL) return *call_p;
    if (spare != NULL) {
        *call_p = spare;
        spare = NULL;
    } else if ((*call_p = PyMem_Calloc(1, sizeof **call_p)) == NULL) {
        PyErr_NoMemory();
    }
    return *call_p;
}

static void call_free(Call *call) {
    if (call->request != NULL) dtrain_request_free(call->request);
    for (int i = 0; i < ROLES; i++) buffer_give_back(&call->buffers[i]);
    Py_XDECREF(call->root_object);
    if (spare != NULL) {
        PyMem_Free(call);
    } else {
        memset(call, 0, sizeof *call);
        spare = call;
    }
}

static int call_finished(const Call *call) {
    dtrain_event_t event;
    return call->request == NULL || dtrain_request_result(call->request, &event) == DTRAIN_OK;
}

/* Frees the abandoned calls that have finished. */
static void sweep_abandoned(void) {
    for (Call **at = &abandoned; *at != NULL;) {
        Call *call = *at;
        if (call_finished(call)) {
            *at = call->next;
            call_free(call);
        } else {
            at = &call->next;
        }
    }
}

static void call_drop(Call *call) {
    if (call_finished(call)) {
        call_free(call);
    } else {
        call->next = abandoned;
        abandoned = call;
    }
}

static void capsule_drop(PyObject *capsule) { call_drop(PyCapsule_GetPointer(capsule, CALL_NAME)); }

static Buffer *call_buffer(Call **call_p, int role, PyObject *object, int writable,
                           const char *name) {
    Call *call = call_make(call_p);
    if (call == NULL) return NULL;
    Buffer *buffer = &call->buffers[role];
    if (object == Py_None) return buffer;
    if (!buffer_take(buffer, object, writable, name)) return NULL;
    call->on_gpu |= buffer->on_gpu;
    return buffer;
}

/* Waits in slices, so that Python can run signal handlers. Returns IN_PROGRESS after timeout_ns (<
 * 0: no limit), the outcome, or INTERRUPTED with the exception of a signal handler. */
enum { INTERRUPTED = -1000 };
static dtrain_status_t call_wait(Call *call, int64_t timeout_ns) {
    const int64_t slice_ns = 20 * 1000 * 1000;
    dtrain_event_t event;
    if (dtrain_request_result(call->request, &event) == DTRAIN_OK) return event.status;
    for (;;) {
        const int last = timeout_ns >= 0 && timeout_ns <= slice_ns;
        dtrain_status_t status;
        call->root->users++;
        Py_BEGIN_ALLOW_THREADS status =
            dtrain_request_wait(call->request, last ? timeout_ns : slice_ns);
        Py_END_ALLOW_THREADS call->root->users--;
        if (status != DTRAIN_IN_PROGRESS) return status;
        if (PyErr_CheckSignals() != 0) return INTERRUPTED;
        if (last) return status;
        if (timeout_ns > 0) timeout_ns -= slice_ns;
    }
}

static void raise_outcome(Call *call, dtrain_status_t status) {
    dtrain_event_t event;
    char text[2048];
    dtrain_last_error(text, sizeof text);
    if (dtrain_request_result(call->request, &event) != DTRAIN_OK) { /* the wait itself failed */
        raise_error(status, text, -1);
        return;
    }
    dtrain_request_error(call->request, text, sizeof text);
    raise_error(status, text, event.peer);
}

/* The result of a finished operation; NULL with its error. */
static PyObject *call_result(Call *call) {
    dtrain_event_t event;
    dtrain_status_t status = dtrain_request_result(call->request, &event);
    if (status == DTRAIN_OK) status = event.status;
    if (status != DTRAIN_OK) {
        raise_outcome(call, status);
        return NULL;
    }
    return PyObject_CallFunction(result_type, "KiKK", (unsigned long long)event.bytes,
                                 (int)event.peer, (unsigned long long)event.version,
                                 (unsigned long long)call->number);
}

/* Called when the operation has begun: tells autograd that its output tensors change. */
static void call_changes(const Call *call) {
    if (tensors.type == NULL) return;
    for (int i = 0; i < ROLES; i++) {
        const Buffer *buffer = &call->buffers[i];
        if (buffer->tensor != NULL && buffer->written) tensor_changes(buffer->tensor);
    }
}

/* The return value of a posted operation: a capsule of the request, or the result of a blocking
 * call. */
static PyObject *call_return(Call **call_p, Handle *handle, PyObject *handle_object,
                             int with_result) {
    Call *call = *call_p;
    *call_p = NULL;
    call->root = handle->root;
    call->root_object = handle->root_object != NULL ? handle->root_object : handle_object;
    Py_INCREF(call->root_object);
    if (abandoned != NULL) sweep_abandoned();
    if (call->mode != MODE_PREPARE) call_changes(call);
    if (call->mode != MODE_BLOCK) {
        PyObject *capsule = PyCapsule_New(call, CALL_NAME, capsule_drop);
        if (capsule == NULL) call_drop(call);
        return capsule;
    }
    const dtrain_status_t status = call_wait(call, -1);
    PyObject *result = NULL;
    if (status == INTERRUPTED)
        dtrain_request_cancel(call->request); /* otherwise a receive might take a later message */
    else if (status != DTRAIN_OK)
        raise_outcome(call, status);
    else if (with_result)
        result = call_result(call);
    else
        Py_INCREF(result = Py_None);
    call_drop(call);
    return result;
}

static Call *call_of(PyObject *capsule) { return PyCapsule_GetPointer(capsule, CALL_NAME); }

#endif
