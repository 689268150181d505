/* Memory of Python objects: whatever has the buffer protocol here, everything else by
 * dtrain._arrays.adapt().
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTRAIN_PYTHON_BUFFERS_H
#define DTRAIN_PYTHON_BUFFERS_H
#include "handles.h"

typedef struct Buffer {
    void *data;
    uint64_t count; /* elements */
    uint32_t dtype;
    int present, readonly;
    Py_buffer view; /* view.obj == NULL: the memory is kept by: */
    PyObject *owner;
} Buffer;

/* (object, writable) -> (address, count, dtype, readonly, owner) */
static PyObject *array_adapter;

static uint32_t dtype_of_format(const char *format, Py_ssize_t size) {
    if (format == NULL) return DTRAIN_U8;
    if (*format == '@' || *format == '=' || *format == '<') format++;
    if (format[0] == 0 || format[1] != 0) return 0;
    const int log = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : size == 8 ? 3 : -1;
    if (log < 0) return 0;
    if (strchr("bhilqn", *format)) return DTRAIN_I8 + 2 * (uint32_t)log;
    if (strchr("BHILQN", *format)) return DTRAIN_U8 + 2 * (uint32_t)log;
    return *format == 'f'   ? DTRAIN_F32
           : *format == 'd' ? DTRAIN_F64
           : *format == 'e' ? DTRAIN_F16
                            : 0;
}

/* Why the buffer protocol refused. */
static int explain_refusal(PyObject *object, int writable) {
    Py_buffer view;
    PyErr_Clear();
    if (PyObject_GetBuffer(object, &view, PyBUF_FULL_RO) != 0) return 0;
    if (!PyBuffer_IsContiguous(&view, 'C'))
        PyErr_SetString(PyExc_ValueError,
                        "the array is not contiguous (in C order); pass a "
                        "contiguous copy, for example numpy.ascontiguousarray(x)");
    else if (writable && view.readonly)
        PyErr_SetString(PyExc_ValueError, "the array is read-only, and the result would be written "
                                          "to it; pass a writable one");
    else
        PyErr_Format(PyExc_ValueError, "%s refuses its buffer", Py_TYPE(object)->tp_name);
    PyBuffer_Release(&view);
    return 0;
}

static int buffer_adapt(Buffer *buffer, PyObject *object, int writable) {
    PyObject *found =
        PyObject_CallFunction(array_adapter, "OO", object, writable ? Py_True : Py_False);
    if (found == NULL) return 0;
    unsigned long long address, count;
    unsigned int dtype;
    if (!PyArg_ParseTuple(found, "KKIpO", &address, &count, &dtype, &buffer->readonly,
                          &buffer->owner)) {
        buffer->owner = NULL;
        Py_DECREF(found);
        return 0;
    }
    Py_INCREF(buffer->owner);
    Py_DECREF(found);
    buffer->data = (void *)(uintptr_t)address;
    buffer->count = count;
    buffer->dtype = dtype;
    return buffer->present = 1;
}

/* 0 with an exception. */
static int buffer_take(Buffer *buffer, PyObject *object, int writable) {
    if (!PyObject_CheckBuffer(object)) return buffer_adapt(buffer, object, writable);
    const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object, &buffer->view, flags) != 0) {
        buffer->view.obj = NULL;
        return explain_refusal(object, writable);
    }
    buffer->present = 1;
    buffer->readonly = buffer->view.readonly;
    buffer->data = buffer->view.buf;
    buffer->dtype = dtype_of_format(buffer->view.format, buffer->view.itemsize);
    if (buffer->dtype == 0) {
        PyErr_Format(PyExc_TypeError,
                     "elements of format \"%s\" cannot be sent; convert them to one of f32, f64, "
                     "f16, bf16 or an integer of 8 to 64 bits, in this machine's byte order",
                     buffer->view.format);
        return 0;
    }
    buffer->count = (uint64_t)(buffer->view.len / buffer->view.itemsize);
    return 1;
}

static void buffer_give_back(Buffer *buffer) {
    if (buffer->view.obj != NULL) PyBuffer_Release(&buffer->view);
    Py_CLEAR(buffer->owner);
}

#endif
