/* Whether a context can use the memory of GPUs. The library takes every address for the host's
 * until it has loaded a plugin for the accelerator; it looks for one when it describes a context.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTRAIN_PYTHON_GPUS_H
#define DTRAIN_PYTHON_GPUS_H
#include "handles.h"

/* (text of dtrain_context_describe()) -> None, or an exception that says why it cannot */
static PyObject *gpu_checker;

static size_t gpus_describe(Handle *context, char *text, size_t length) {
    size_t whole;
    context->users++;
    Py_BEGIN_ALLOW_THREADS whole = dtrain_context_describe(context->pointer, text, length);
    Py_END_ALLOW_THREADS context->users--;
    return whole;
}

/* Looks once for each context. Returns 0 with an exception. */
static int gpus_known(const Handle *handle) {
    Handle *context = handle->root;
    if (context->knows_gpus) return 1;
    const size_t length = gpus_describe(context, NULL, 0) + 4096; /* it may grow */
    char *text = calloc(1, length);
    if (text == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    gpus_describe(context, text, length);
    PyObject *done = PyObject_CallFunction(gpu_checker, "s", text);
    free(text);
    if (done == NULL) return 0;
    Py_DECREF(done);
    return context->knows_gpus = 1;
}

#endif
