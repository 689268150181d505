/* CPU tensors of torch, without a DLPack capsule for each call: methods of the tensor give its
 * address in half a microsecond. Tensors that are not simple are left to DLPack.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTRAIN_PYTHON_TENSORS_H
#define DTRAIN_PYTHON_TENSORS_H
#include "numbers.h"
#include <dtrain.h>

static struct {
    PyTypeObject *type; /* torch.Tensor; NULL until torch is imported */
    PyObject *dtypes;   /* {torch.float32: DTRAIN_F32, ...} */
    PyObject *storage;  /* the name of the method for what keeps the memory; the others' names: */
    PyObject *dtype, *is_cpu, *requires_grad, *is_contiguous, *is_neg, *numel, *data_ptr, *copy_;
} tensors;

static int tensors_name(PyObject **name_p, const char *text) {
    if (*name_p == NULL) *name_p = PyUnicode_InternFromString(text);
    return *name_p != NULL;
}

static int tensors_add_dtype(PyObject *torch, const char *name, uint32_t number) {
    PyObject *dtype = PyObject_GetAttrString(torch, name), *value = PyLong_FromUnsignedLong(number);
    const int added =
        dtype != NULL && value != NULL && PyDict_SetItem(tensors.dtypes, dtype, value) == 0;
    Py_XDECREF(dtype);
    Py_XDECREF(value);
    return added;
}

/* Types that torch has since 2.3. */
static void tensors_add_newer(PyObject *torch) {
    static const struct {
        const char *name;
        uint32_t number;
    } newer[] = {{"uint16", DTRAIN_U16}, {"uint32", DTRAIN_U32}, {"uint64", DTRAIN_U64}};
    for (size_t i = 0; i < sizeof newer / sizeof *newer; i++)
        if (PyObject_HasAttrString(torch, newer[i].name))
            tensors_add_dtype(torch, newer[i].name, newer[i].number);
}

/* Whether torch is loaded; if any part of it is missing, it counts as not loaded. */
static int tensors_find(void) {
    if (tensors.type != NULL) return 1;
    PyObject *modules = PyImport_GetModuleDict(); /* borrowed */
    PyObject *torch = modules == NULL ? NULL : PyDict_GetItemString(modules, "torch");
    if (torch == NULL || !PyObject_HasAttrString(torch, "bfloat16"))
        return 0; /* or torch is only half imported */
    PyObject *type = PyObject_GetAttrString(torch, "Tensor");
    if (tensors.dtypes == NULL) tensors.dtypes = PyDict_New();
    const int found =
        type != NULL && PyType_Check(type) && tensors.dtypes != NULL &&
        tensors_name(&tensors.storage, PyObject_HasAttrString(type, "untyped_storage")
                                           ? "untyped_storage"
                                           : "_storage") &&
        tensors_name(&tensors.dtype, "dtype") && tensors_name(&tensors.is_cpu, "is_cpu") &&
        tensors_name(&tensors.requires_grad, "requires_grad") &&
        tensors_name(&tensors.is_contiguous, "is_contiguous") &&
        tensors_name(&tensors.is_neg, "is_neg") && tensors_name(&tensors.numel, "numel") &&
        tensors_name(&tensors.data_ptr, "data_ptr") && tensors_name(&tensors.copy_, "copy_") &&
        tensors_add_dtype(torch, "float32", DTRAIN_F32) &&
        tensors_add_dtype(torch, "float64", DTRAIN_F64) &&
        tensors_add_dtype(torch, "float16", DTRAIN_F16) &&
        tensors_add_dtype(torch, "bfloat16", DTRAIN_BF16) &&
        tensors_add_dtype(torch, "int8", DTRAIN_I8) &&
        tensors_add_dtype(torch, "uint8", DTRAIN_U8) &&
        tensors_add_dtype(torch, "int16", DTRAIN_I16) &&
        tensors_add_dtype(torch, "int32", DTRAIN_I32) &&
        tensors_add_dtype(torch, "int64", DTRAIN_I64);
    if (found)
        tensors.type = (PyTypeObject *)type; /* kept */
    else
        Py_XDECREF(type);
    if (found) tensors_add_newer(torch);
    PyErr_Clear();
    return found;
}

static int tensors_say(PyObject *found, PyObject *wanted) {
    Py_XDECREF(found); /* True and False are immortal */
    return found == wanted;
}

static uint64_t tensors_number(PyObject *found) {
    const uint64_t number = found == NULL ? UINT64_MAX : PyLong_AsUnsignedLongLong(found);
    Py_XDECREF(found);
    return number;
}

/* Returns the storage that keeps the tensor's memory alive, even if the tensor gets other memory;
 * NULL without an exception if the tensor is not simple. */
static PyObject *tensor_take(PyObject *tensor, void **data, uint64_t *count, uint32_t *dtype) {
    PyObject *storage = NULL, *type = PyObject_GetAttr(tensor, tensors.dtype);
    PyObject *number = type == NULL ? NULL : PyDict_GetItem(tensors.dtypes, type); /* borrowed */
    Py_XDECREF(type);
    if (number != NULL && tensors_say(PyObject_GetAttr(tensor, tensors.is_cpu), Py_True) &&
        tensors_say(PyObject_GetAttr(tensor, tensors.requires_grad), Py_False) &&
        tensors_say(PyObject_CallMethodNoArgs(tensor, tensors.is_contiguous), Py_True) &&
        tensors_say(PyObject_CallMethodNoArgs(tensor, tensors.is_neg), Py_False)) {
        *dtype = (uint32_t)PyLong_AsUnsignedLong(number);
        *count = tensors_number(PyObject_CallMethodNoArgs(tensor, tensors.numel));
        *data =
            (void *)(uintptr_t)tensors_number(PyObject_CallMethodNoArgs(tensor, tensors.data_ptr));
        if (!PyErr_Occurred()) storage = PyObject_CallMethodNoArgs(tensor, tensors.storage);
    }
    PyErr_Clear();
    return storage;
}

/* Tells autograd that the tensor changes: a copy to itself moves nothing, but is counted. Tensors
 * without a counter (of inference_mode()) need no report. */
static void tensor_changes(PyObject *tensor) {
    PyObject *result = PyObject_CallMethodOneArg(tensor, tensors.copy_, tensor);
    if (result == NULL) PyErr_Clear();
    Py_XDECREF(result);
}

#endif
