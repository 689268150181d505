/* Converts Python numbers to C; errors name the parameter.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTRAIN_PYTHON_NUMBERS_H
#define DTRAIN_PYTHON_NUMBERS_H
#include <Python.h>
#include <stdint.h>

static PyTypeObject *op_type; /* dtrain.Op */
static PyObject *op_finder;   /* (object) -> DTRAIN_SUM, ...: for other objects */

static int number_refuse(PyObject *object, const char *name, const char *wanted) {
    PyErr_Format(PyExc_TypeError, "%s: %s is needed, not %s", name, wanted,
                 Py_TYPE(object)->tp_name);
    return 0;
}

static int signed_take(PyObject *object, const char *name, int64_t least, int64_t most,
                       int64_t *value) {
    if (!PyIndex_Check(object)) return number_refuse(object, name, "an int");
    int overflow = 0;
    PyObject *number = PyNumber_Index(object);
    if (number == NULL) return 0;
    *value = PyLong_AsLongLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    if (*value == -1 && PyErr_Occurred()) return 0;
    if (overflow == 0 && *value >= least && *value <= most) return 1;
    PyErr_Format(PyExc_ValueError, "%s: %R is not between %lld and %lld", name, object,
                 (long long)least, (long long)most);
    return 0;
}

static int unsigned_take(PyObject *object, const char *name, uint64_t most, uint64_t *value) {
    if (!PyIndex_Check(object)) return number_refuse(object, name, "an int");
    PyObject *number = PyNumber_Index(object);
    if (number == NULL) return 0;
    *value = PyLong_AsUnsignedLongLong(number);
    Py_DECREF(number);
    const int outside = *value == UINT64_MAX && PyErr_Occurred() != NULL;
    if (!outside && *value <= most) return 1;
    PyErr_Clear();
    PyErr_Format(PyExc_ValueError, "%s: %R is not between 0 and %llu", name, object,
                 (unsigned long long)most);
    return 0;
}

static int int32_take(PyObject *object, const char *name, int32_t *value) {
    int64_t wide;
    if (!signed_take(object, name, INT32_MIN, INT32_MAX, &wide)) return 0;
    *value = (int32_t)wide;
    return 1;
}

static int int64_take(PyObject *object, const char *name, int64_t *value) {
    return signed_take(object, name, INT64_MIN, INT64_MAX, value);
}

static int uint32_take(PyObject *object, const char *name, uint32_t *value) {
    uint64_t wide;
    if (!unsigned_take(object, name, UINT32_MAX, &wide)) return 0;
    *value = (uint32_t)wide;
    return 1;
}

static int uint64_take(PyObject *object, const char *name, uint64_t *value) {
    return unsigned_take(object, name, UINT64_MAX, value);
}

static int double_take(PyObject *object, const char *name, double *value) {
    *value = PyFloat_AsDouble(object);
    if (*value != -1 || !PyErr_Occurred()) return 1;
    if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
        PyErr_Format(PyExc_ValueError, "%s: %R is too large for a float", name, object);
        return 0;
    }
    PyErr_Clear();
    return number_refuse(object, name, "a number");
}

/* An int, a dtrain.Op, or its name. */
static int op_take(PyObject *object, uint32_t *value) {
    if (Py_TYPE(object) == op_type) {
        *value = (uint32_t)PyLong_AsUnsignedLong(object);
        return 1;
    }
    if (PyLong_CheckExact(object)) return uint32_take(object, "op", value);
    PyObject *found = PyObject_CallFunctionObjArgs(op_finder, object, NULL);
    const int taken = found != NULL && uint32_take(found, "op", value);
    Py_XDECREF(found);
    return taken;
}

#endif
