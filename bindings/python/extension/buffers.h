/* Memory of Python objects: by the buffer protocol, or else by dtrain._arrays.adapt(). It may be a
 * GPU's.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTRAIN_PYTHON_BUFFERS_H
#define DTRAIN_PYTHON_BUFFERS_H
#include "handles.h"
#include "tensors.h"

typedef struct Buffer {
    void *data;
    uint64_t count; /* elements */
    uint32_t dtype;
    int present, readonly, written;
    int on_gpu;     /* only a GPU can access it */
    Py_buffer view; /* view.obj == NULL: owner keeps the memory */
    PyObject *owner;
    PyObject *tensor; /* a torch tensor, whose change is reported; else NULL */
} Buffer;

static PyTypeObject *typed_type; /* dtrain.typed(): an array with a dtype */

/* (object, writable, name) -> (address, count, dtype, readonly, on_gpu, owner) */
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

static int buffer_adapt(Buffer *buffer, PyObject *object, int writable, const char *name) {
    PyObject *found =
        PyObject_CallFunction(array_adapter, "OOs", object, writable ? Py_True : Py_False, name);
    if (found == NULL) return 0;
    unsigned long long address, count;
    unsigned int dtype;
    if (!PyArg_ParseTuple(found, "KKIppO", &address, &count, &dtype, &buffer->readonly,
                          &buffer->on_gpu, &buffer->owner)) {
        buffer->owner = NULL;
        Py_DECREF(found);
        return 0;
    }
    Py_INCREF(buffer->owner);
    Py_DECREF(found);
    if (tensors_find() && PyObject_TypeCheck(object, tensors.type))
        Py_INCREF(buffer->tensor = object);
    buffer->data = (void *)(uintptr_t)address;
    buffer->count = count;
    buffer->dtype = dtype;
    return buffer->present = 1;
}

/* Bytes of one element. */
static uint64_t dtype_size(uint32_t dtype) {
    switch (dtype) {
    case DTRAIN_I8:
    case DTRAIN_U8: return 1;
    case DTRAIN_F16:
    case DTRAIN_BF16:
    case DTRAIN_I16:
    case DTRAIN_U16: return 2;
    case DTRAIN_F32:
    case DTRAIN_I32:
    case DTRAIN_U32: return 4;
    default: return 8;
    }
}

/* The object has no usable buffer: takes its memory in another way, or raises the reason. */
static int buffer_refused(Buffer *buffer, PyObject *object, int writable, const char *name) {
    Py_buffer view;
    PyErr_Clear();
    if (PyObject_GetBuffer(object, &view, PyBUF_FULL_RO) != 0) {
        PyErr_Clear(); /* NumPy has no format for elements of other packages' types */
        return buffer_adapt(buffer, object, writable, name);
    }
    if (!PyBuffer_IsContiguous(&view, 'C'))
        PyErr_Format(PyExc_ValueError,
                     "%s: the array is not contiguous (in C order); pass a "
                     "contiguous copy, for example numpy.ascontiguousarray(x)",
                     name);
    else if (writable && view.readonly)
        PyErr_Format(PyExc_ValueError,
                     "%s: the array is read-only, and the result would be written to it; pass a "
                     "writable one",
                     name);
    else
        PyErr_Format(PyExc_ValueError, "%s: %s refuses its buffer", name, Py_TYPE(object)->tp_name);
    PyBuffer_Release(&view);
    return 0;
}

static int buffer_of_tensor(Buffer *buffer, PyObject *object) {
    buffer->owner = tensor_take(object, &buffer->data, &buffer->count, &buffer->dtype);
    if (buffer->owner == NULL) return 0;
    Py_INCREF(buffer->tensor = object);
    return buffer->present = 1;
}

/* Takes the memory. If only a format describes the elements, dtype stays 0 and count is in
 * bytes. */
static int buffer_reach(Buffer *buffer, PyObject *object, int writable, const char *name) {
    if (!PyObject_CheckBuffer(object)) {
        const int is_tensor = tensors_find() && Py_TYPE(object) == tensors.type;
        return (is_tensor && buffer_of_tensor(buffer, object)) ||
               buffer_adapt(buffer, object, writable, name);
    }
    const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object, &buffer->view, flags) != 0) {
        buffer->view.obj = NULL;
        return buffer_refused(buffer, object, writable, name);
    }
    buffer->present = 1;
    buffer->readonly = buffer->view.readonly;
    buffer->data = buffer->view.buf;
    buffer->count = (uint64_t)buffer->view.len;
    return 1;
}

/* Takes the memory of dtrain.typed(): as elements of its dtype. */
static int buffer_typed(Buffer *buffer, PyObject *typed, int writable, const char *name) {
    PyObject *array = PyObject_GetAttrString(typed, "array");
    PyObject *dtype = PyObject_GetAttrString(typed, "dtype");
    uint32_t number = 0;
    int taken = array != NULL && dtype != NULL && uint32_take(dtype, "dtype", &number) &&
                buffer_reach(buffer, array, writable, name);
    Py_XDECREF(array);
    Py_XDECREF(dtype);
    if (!taken) return 0;
    const uint64_t bytes = buffer->count * (buffer->dtype == 0 ? 1 : dtype_size(buffer->dtype));
    buffer->dtype = number;
    buffer->count = bytes / dtype_size(number);
    if (bytes % dtype_size(number) == 0 &&
        (uintptr_t)buffer->data % (bytes == 0 ? 1 : dtype_size(number)) == 0)
        return 1;
    PyErr_Format(PyExc_ValueError,
                 "%s: its %llu bytes are not whole elements of %llu bytes, or not "
                 "aligned for them",
                 name, (unsigned long long)bytes, (unsigned long long)dtype_size(number));
    return 0;
}

/* Returns 0 with an exception that names the parameter. */
static int buffer_take(Buffer *buffer, PyObject *object, int writable, const char *name) {
    buffer->written = writable;
    if (Py_TYPE(object) == typed_type) return buffer_typed(buffer, object, writable, name);
    if (!buffer_reach(buffer, object, writable, name)) return 0;
    if (buffer->view.obj == NULL) return 1;
    buffer->dtype = dtype_of_format(buffer->view.format, buffer->view.itemsize);
    if (buffer->dtype == 0) {
        PyErr_Format(
            PyExc_TypeError,
            "%s: elements of format \"%s\" cannot be sent; convert them to one of f32, f64, "
            "f16, bf16 or an integer of 8 to 64 bits, in this machine's byte order",
            name, buffer->view.format);
        return 0;
    }
    buffer->count = (uint64_t)(buffer->view.len / buffer->view.itemsize);
    return 1;
}

/* For what the host reads. Returns 0 with an exception. */
static int buffer_on_host(const Buffer *buffer, const char *name) {
    if (!buffer->on_gpu) return 1;
    char text[256];
    PyOS_snprintf(text, sizeof text,
                  "%s: the array is on a GPU, and is read on the host here; pass a "
                  "copy on the host",
                  name);
    raise_error(DTRAIN_ERR_UNSUPPORTED, text, -1);
    return 0;
}

static void buffer_give_back(Buffer *buffer) {
    if (buffer->view.obj != NULL) PyBuffer_Release(&buffer->view);
    Py_CLEAR(buffer->owner);
    Py_CLEAR(buffer->tensor);
}

#endif
