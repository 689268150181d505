/* The module _dtrain. SWIG's code keeps its types, and the library's callbacks, in static memory,
 * so the module works in one interpreter only: the first that imports it; others get an
 * ImportError.
 * SPDX-License-Identifier: Apache-2.0 */
#include <Python.h>

PyMODINIT_FUNC dtrain_swig_module(void); /* SWIG's PyInit__dtrain */

static PyObject *module; /* never freed */
static int64_t home = -1;
static int ended;

static void note_end(void) { ended = 1; }

static PyObject *create(PyObject *spec, PyModuleDef *definition) {
    (void)definition;
    const int64_t here = PyInterpreterState_GetID(PyInterpreterState_Get());
    if (ended || (module != NULL && here != home)) {
        PyErr_Format(
            PyExc_ImportError,
            "dtrain is for one interpreter of a process, and another one has imported it%s; "
            "use it there, or in another process",
            ended ? " that has ended" : "");
        return NULL;
    }
    if (module == NULL) {
        PyObject *made = dtrain_swig_module();
        PyObject *name = made == NULL ? NULL : PyObject_GetAttrString(spec, "name");
        if (name == NULL || PyObject_SetAttrString(made, "__name__", name) != 0) {
            Py_XDECREF(name);
            return NULL;
        }
        Py_DECREF(name);
        Py_AtExit(note_end);
        module = made;
        home = here;
    }
    Py_INCREF(module);
    return module;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_create, (void *)create},
#if PY_VERSION_HEX >= 0x030c0000
    {Py_mod_multiple_interpreters,
     Py_MOD_MULTIPLE_INTERPRETERS_SUPPORTED}, /* refused by create() */
#endif
    {0, NULL}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "_dtrain", .m_slots = slots};

PyMODINIT_FUNC PyInit__dtrain(void);
PyMODINIT_FUNC PyInit__dtrain(void) { return PyModuleDef_Init(&definition); }
