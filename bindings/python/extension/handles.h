/* Handles of the C API as capsules. Calls on closed handles, and closing a handle that another
 * thread is using, are refused. All functions here run with the GIL held, which protects the
 * counts.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTRAIN_PYTHON_HANDLES_H
#define DTRAIN_PYTHON_HANDLES_H
#include <Python.h>
#include <dtrain.h>

typedef struct Handle {
    void *pointer; /* NULL: closed */
    int users;     /* calls that use it now; of a context: also calls on its objects */
    struct Handle *root;
    PyObject *root_object; /* keeps root alive; NULL: this is the root */
    uint32_t dtype;        /* of a table's or compressor's values; 0: unknown */
    uint64_t width;        /* elements of a row of a sparse table, or of a compressor's vector */
    int knows_gpus;        /* of a context: the library can use buffers on GPUs */
} Handle;

/* (status, text, rank or None) -> an object of dtrain.Error or a subclass */
static PyObject *error_factory;

static void raise_error(dtrain_status_t status, const char *text, int32_t rank) {
    PyObject *error =
        rank < 0 ? PyObject_CallFunction(error_factory, "isO", (int)status, text, Py_None)
                 : PyObject_CallFunction(error_factory, "isi", (int)status, text, (int)rank);
    if (error == NULL) return;
    PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_DECREF(error);
}

/* Raises the error of this thread's last failed call. */
static void raise_last_error(dtrain_status_t status) {
    char text[2048];
    dtrain_last_error(text, sizeof text);
    raise_error(status, text, -1);
}

static void handle_free(PyObject *capsule) {
    Handle *handle = PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule));
    Py_XDECREF(handle->root_object);
    PyMem_Free(handle);
}

/* A capsule for a new object; parent: the capsule of the handle that it was made with, or NULL. */
static PyObject *handle_make(void *pointer, const char *type, PyObject *parent) {
    if (pointer == NULL) Py_RETURN_NONE;
    Handle *handle = PyMem_Calloc(1, sizeof *handle);
    if (handle == NULL) return PyErr_NoMemory();
    PyObject *capsule = PyCapsule_New(handle, type, handle_free);
    if (capsule == NULL) {
        PyMem_Free(handle);
        return NULL;
    }
    handle->pointer = pointer;
    handle->root = handle;
    if (parent != NULL) {
        Handle *of = PyCapsule_GetPointer(parent, PyCapsule_GetName(parent));
        handle->root = of->root;
        handle->root_object = of->root_object != NULL ? of->root_object : parent;
        Py_INCREF(handle->root_object);
    }
    return capsule;
}

/* Marks the handle as used by one call, until handle_leave(); NULL with an exception. */
static Handle *handle_enter(PyObject *capsule, const char *type) {
    Handle *handle = PyCapsule_IsValid(capsule, type) ? PyCapsule_GetPointer(capsule, type) : NULL;
    if (handle == NULL || handle->pointer == NULL) {
        char text[128];
        snprintf(text, sizeof text, "this %.*s is closed", (int)strlen(type) - 9, type + 7);
        raise_error(DTRAIN_ERR_STATE, text, -1);
        return NULL;
    }
    handle->users++;
    if (handle->root != handle) handle->root->users++;
    return handle;
}

static void handle_leave(Handle *handle) {
    if (handle == NULL) return;
    handle->users--;
    if (handle->root != handle) handle->root->users--;
}

/* For exclusive calls: removes the pointer, so that other threads cannot use it, or fails. */
static int handle_claim(Handle *handle, void **pointer_p) {
    if (handle->users > 1) {
        raise_error(DTRAIN_ERR_BUSY,
                    "another thread is in a call of this object; wait for it first", -1);
        return 0;
    }
    *pointer_p = handle->pointer;
    handle->pointer = NULL;
    return 1;
}

#endif
