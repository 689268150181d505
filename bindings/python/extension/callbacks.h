/* Python functions that the library calls, from any of its threads. Exceptions of a log sink are
 * reported; other functions are dtrain._callbacks.Callback, which store theirs and return None.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTRAIN_PYTHON_CALLBACKS_H
#define DTRAIN_PYTHON_CALLBACKS_H
#include <Python.h>
#include <dtrain.h>

static void call_log(void *arg, int32_t level, const char *line) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *result = PyObject_CallFunction(
        arg, "iN", (int)level, PyUnicode_DecodeUTF8(line, (Py_ssize_t)strlen(line), "replace"));
    if (result == NULL) PyErr_WriteUnraisable(arg);
    Py_XDECREF(result);
    PyGILState_Release(state);
}

/* arg(mine) -> [bytes of each rank], of the same length. */
static int32_t call_allgather(void *arg, const void *send, void *recv, size_t len) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *all = PyObject_CallFunction(arg, "y#", (const char *)send, (Py_ssize_t)len);
    PyObject *list = all == NULL || all == Py_None ? NULL : PySequence_Fast(all, "no list");
    int failed = list == NULL;
    for (Py_ssize_t i = 0; !failed && i < PySequence_Fast_GET_SIZE(list); i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(list, i);
        memcpy((char *)recv + (size_t)i * len, PyBytes_AS_STRING(item), len);
    }
    Py_XDECREF(list);
    Py_XDECREF(all);
    if (PyErr_Occurred()) PyErr_WriteUnraisable(arg);
    PyGILState_Release(state);
    return failed;
}

/* arg(first, count, servers) -> server; the library refuses a result that is no server's number. */
static uint32_t call_place(void *arg, uint64_t first, uint64_t count, uint32_t servers) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *server = PyObject_CallFunction(arg, "KKI", (unsigned long long)first,
                                             (unsigned long long)count, servers);
    const int failed = server == NULL || server == Py_None;
    const unsigned long number = failed ? UINT32_MAX : PyLong_AsUnsignedLong(server);
    if (PyErr_Occurred()) PyErr_WriteUnraisable(arg);
    Py_XDECREF(server);
    PyGILState_Release(state);
    return failed || number >= UINT32_MAX ? UINT32_MAX : (uint32_t)number;
}

#endif
