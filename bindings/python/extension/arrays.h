/* A list of floating-point arrays that a call changes in place.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTRAIN_PYTHON_ARRAYS_H
#define DTRAIN_PYTHON_ARRAYS_H
#include "buffers.h"

typedef struct Arrays {
    Buffer *buffers;
    void **data;
    uint64_t *counts;
    uint32_t *dtypes, count;
} Arrays;

static void arrays_give_back(Arrays *arrays) {
    for (uint32_t i = 0; arrays->buffers != NULL && i < arrays->count; i++)
        buffer_give_back(&arrays->buffers[i]);
    PyMem_Free(arrays->buffers);
    PyMem_Free(arrays->data);
    PyMem_Free(arrays->counts);
    PyMem_Free(arrays->dtypes);
}

static int arrays_make(Arrays *arrays, uint32_t count) {
    arrays->buffers = PyMem_Calloc((size_t)count + 1, sizeof *arrays->buffers);
    arrays->data = PyMem_Calloc((size_t)count + 1, sizeof *arrays->data);
    arrays->counts = PyMem_Calloc((size_t)count + 1, sizeof *arrays->counts);
    arrays->dtypes = PyMem_Calloc((size_t)count + 1, sizeof *arrays->dtypes);
    if (arrays->buffers != NULL && arrays->data != NULL && arrays->counts != NULL &&
        arrays->dtypes != NULL) {
        arrays->count = count;
        return 1;
    }
    PyErr_NoMemory();
    return 0;
}

/* Takes the arrays of a list. Returns 0 with an exception that names the parameter and the
 * index. */
static int arrays_take(Arrays *arrays, PyObject *list, const char *name) {
    if (!PyList_Check(list) || PyList_GET_SIZE(list) > UINT32_MAX) {
        PyErr_Format(PyExc_TypeError, "%s: a list of arrays is needed, not %s", name,
                     Py_TYPE(list)->tp_name);
        return 0;
    }
    if (!arrays_make(arrays, (uint32_t)PyList_GET_SIZE(list))) return 0;
    for (uint32_t i = 0; i < arrays->count; i++) {
        char which[64];
        Buffer *buffer = &arrays->buffers[i];
        PyOS_snprintf(which, sizeof which, "%s[%u]", name, (unsigned)i);
        PyObject *array = i < PyList_GET_SIZE(list) ? PyList_GET_ITEM(list, i) : Py_None;
        Py_INCREF(array); /* methods of the array may change the list */
        const int taken = buffer_take(buffer, array, 1, which);
        Py_DECREF(array);
        if (!taken || !buffer_on_host(buffer, which)) return 0;
        if (buffer->dtype < DTRAIN_F32 || buffer->dtype > DTRAIN_BF16) {
            PyErr_Format(PyExc_TypeError, "%s: elements of f32, f64, f16 or bf16 are needed",
                         which);
            return 0;
        }
        arrays->data[i] = buffer->data;
        arrays->counts[i] = buffer->count;
        arrays->dtypes[i] = buffer->dtype;
    }
    return 1;
}

/* Tells autograd that the tensors change. */
static void arrays_change(const Arrays *arrays) {
    for (uint32_t i = 0; i < arrays->count; i++)
        if (arrays->buffers[i].tensor != NULL) tensor_changes(arrays->buffers[i].tensor);
}

#endif
