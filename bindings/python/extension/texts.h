/* Converts Python texts to C.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTRAIN_PYTHON_TEXTS_H
#define DTRAIN_PYTHON_TEXTS_H
#include <Python.h>

/* The UTF-8 text that the str owns, valid as long as it lives; NULL for None. Returns 0 with an
 * exception. */
static int text_borrow(PyObject *object, const char *name, char **text_p) {
    Py_ssize_t length = 0;
    *text_p = NULL;
    if (object == Py_None) return 1;
    if (!PyUnicode_Check(object)) {
        PyErr_Format(PyExc_TypeError, "%s: a str is needed, not %s", name,
                     Py_TYPE(object)->tp_name);
        return 0;
    }
    *text_p = (char *)PyUnicode_AsUTF8AndSize(object, &length);
    if (*text_p == NULL) return 0;
    if ((Py_ssize_t)strlen(*text_p) == length) return 1;
    PyErr_Format(PyExc_ValueError, "%s: the text contains a null character", name);
    return 0;
}

/* Stores a copy in a struct, which owns it. */
static int text_keep(const char *text, const char **kept_p) {
    char *copy = NULL;
    if (text != NULL && (copy = strdup(text)) == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    free((char *)*kept_p);
    *kept_p = copy;
    return 1;
}

#endif
