/* SWIG typemaps that convert Python objects to arguments of the C API, by names and types of the
 * parameters. Handles and requests are capsules, buffers any objects with memory, parameter structs
 * objects with attributes. Calls that may wait or take a lock run without the GIL.
 * SPDX-License-Identifier: Apache-2.0 */
%{
#include "arrays.h"
#include "callbacks.h"
#include "calls.h"
#include "gpus.h"
#include "handles.h"
#include "numbers.h"
#include "shapes.h"
#include "texts.h"
%}

/* ---- handles: name_t * in, name_t ** out ---- */
%define %handle(type)
%typemap(in) type * (Handle *handle = NULL, Call *call = NULL) {
    if ((handle = handle_enter($input, #type)) == NULL) SWIG_fail;
    $1 = handle->pointer;
}
%typemap(in) const type * = type *;
%typemap(freearg) type *, const type * {
    handle_leave(handle$argnum);
    if (call$argnum != NULL) call_free(call$argnum);
}
%typemap(in, numinputs=0) type ** (type *made = NULL) "$1 = &made;"
%typemap(argout) type ** {
    Py_XDECREF($result);
    $result = handle_make(*$1, #type, PyTuple_Check(args) ? PyTuple_GET_ITEM(args, 0) : args);
}
%enddef
%handle(dtrain_options_t)
%handle(dtrain_context_t)
%handle(dtrain_comm_t)
%handle(dtrain_mem_t)
%handle(dtrain_cq_t)
%handle(dtrain_gradients_t)
%handle(dtrain_compressor_t)
%handle(dtrain_graph_t)
%handle(dtrain_server_t)
%handle(dtrain_table_t)
%handle(dtrain_reader_t)
%handle(dtrain_writer_t)
/* The options of a new context, which may be None and need not live longer. */
%typemap(in) const dtrain_options_t * (Handle *handle = NULL) {
    if ($input != Py_None) {
        if ((handle = handle_enter($input, "dtrain_options_t")) == NULL) SWIG_fail;
        $1 = handle->pointer;
    }
}
%typemap(freearg) const dtrain_options_t * "handle_leave(handle$argnum);"
%define %made_alone(type, name)
%typemap(argout) type **name {
    Py_XDECREF($result);
    $result = handle_make(*$1, #type, NULL);
}
%enddef
%made_alone(dtrain_options_t, options_p)
%made_alone(dtrain_context_t, context_p)
%made_alone(dtrain_reader_t, reader_p)
%made_alone(dtrain_writer_t, writer_p)

/* ---- requests ---- */
%typemap(in) dtrain_request_t *request (Call *call) {
    if ((call = call_of($input)) == NULL) SWIG_fail;
    $1 = call->request;
}
/* Takes the mode of the operation; returns a request or the result. */
%typemap(in) dtrain_request_t **request_p {
    const long mode = PyLong_AsLong($input);
    if ((mode == -1 && PyErr_Occurred()) || call_make(&call1) == NULL) SWIG_fail;
    call1->mode = (int)mode;
    $1 = &call1->request;
}
%typemap(argout) dtrain_request_t **request_p {
    Py_XDECREF($result);
    $result = call_return(&call1, handle1, PyTuple_GET_ITEM(args, 0), RESULT_$symname);
}
%typemap(in, numinputs=0) uint64_t *count_p {
    if (call_make(&call1) == NULL) SWIG_fail;
    $1 = &call1->number;
}
%typemap(in, numinputs=0) int32_t *last_p "$1 = NULL;" /* the result's peer has it */

/* ---- memory ---- */
%define %memory(type, name, writable, called)
%typemap(in) type name {
    Buffer *buffer = call_buffer(&call1, ROLE_##name, $input, writable, called);
    if (buffer == NULL) SWIG_fail;
    $1 = buffer->data;
}
%enddef
%memory(const void *, send, 0, "array")
%memory(const void *, buffer, 0, "array")
%memory(const void *, values, 0, "values")
%memory(const void *, pushed, 0, "values")
%memory(const void *, state, 0, "values")
%memory(const float *, send, 0, "array")
%memory(void *, recv, 1, "out")
%memory(void *, buffer, 1, "array")
%memory(void *, values, 1, "out")
%memory(void *, pulled, 1, "out")
%memory(void *, state, 1, "out")
%memory(float *, recv, 1, "out")
%define %numbers(name, on_gpu)
%typemap(in) const uint64_t *name {
    Buffer *buffer = call_buffer(&call1, ROLE_##name, $input, 0, #name);
    if (buffer == NULL || !(on_gpu || buffer_on_host(buffer, #name))) SWIG_fail;
    if (buffer->present && buffer->dtype != DTRAIN_U64 && buffer->dtype != DTRAIN_I64) {
        PyErr_SetString(PyExc_TypeError,
                        #name ": integers of 64 bits are needed, signed or unsigned; convert "
                        "them, for example x.astype(\"int64\") of NumPy, x.long() of torch");
        SWIG_fail;
    }
    $1 = buffer->data;
}
%enddef
%numbers(counts, 0)
%numbers(displs, 0)
%numbers(send_counts, 0)
%numbers(send_displs, 0)
%numbers(recv_counts, 0)
%numbers(recv_displs, 0)
%numbers(keys, 1)
%numbers(items, 0)
%typemap(in) void * { /* an address */
    if (($1 = PyLong_AsVoidPtr($input)) == NULL && PyErr_Occurred()) SWIG_fail;
}
%typemap(out) void * "$result = PyLong_FromVoidPtr($1);"

%typemap(in, numinputs=0) (uint64_t count, uint32_t dtype) { /* from the shape of the buffers */
    $1 = 0;
    $2 = 0;
}
%typemap(in, numinputs=0) uint32_t *servers "$1 = NULL;"
%typemap(argout) uint32_t *servers {
    const uint64_t count = call1->buffers[ROLE_items].count;
    Py_XDECREF($result);
    $result = PyList_New((Py_ssize_t)count);
    for (uint64_t i = 0; $result != NULL && i < count; i++)
        PyList_SET_ITEM($result, (Py_ssize_t)i, PyLong_FromUnsignedLong($1[i]));
}
%typemap(freearg) uint32_t *servers "PyMem_Free($1);"
%typemap(in) (uint32_t serving, uint32_t *weights) {
    if (!uint32_take($input, "serving", &$1)) SWIG_fail;
    $2 = NULL;
}
%typemap(argout) (uint32_t serving, uint32_t *weights) {
    const uint64_t count = (uint64_t)arg2 + $1;
    Py_XDECREF($result);
    $result = PyList_New((Py_ssize_t)count);
    for (uint64_t i = 0; $result != NULL && i < count; i++)
        PyList_SET_ITEM($result, (Py_ssize_t)i, PyLong_FromUnsignedLong($2[i]));
}
%typemap(freearg) (uint32_t serving, uint32_t *weights) "PyMem_Free($2);"
%typemap(in) (const int32_t *ranks, int32_t count) (Buffer list = {0}) {
    if (!buffer_take(&list, $input, 0, "ranks") || !buffer_on_host(&list, "ranks")) SWIG_fail;
    if (list.dtype != DTRAIN_I32 || list.count > INT32_MAX) {
        PyErr_SetString(PyExc_TypeError, "ranks: integers of 32 bits are needed");
        SWIG_fail;
    }
    $1 = list.data;
    $2 = (int32_t)list.count;
}
%typemap(freearg) (const int32_t *ranks, int32_t count) "buffer_give_back(&list$argnum);"

/* ---- numbers ---- */
%define %number(type, taker)
%typemap(in) type {
    if (!taker($input, "$1_name", &$1)) SWIG_fail;
}
%enddef
%number(int32_t, int32_take)
%number(int64_t, int64_take)
%number(uint32_t, uint32_take)
%number(uint64_t, uint64_take)
%number(double, double_take)
%typemap(in) uint64_t bytes {
    if (!uint64_take($input, "size", &$1)) SWIG_fail;
}
%typemap(in) uint32_t op {
    if (!op_take($input, &$1)) SWIG_fail;
}

/* ---- texts ---- */
%typemap(in) const char * {
    if (!text_borrow($input, "$1_name", &$1)) SWIG_fail;
}
%typemap(freearg) const char * ""
%typemap(memberin) const char * {
    if (!text_keep($input, &$1)) SWIG_fail;
}

/* ---- results ---- */
%typemap(out) dtrain_status_t {
    if ($1 < 0) {
        if (!PyErr_Occurred()) raise_last_error($1);
        SWIG_fail;
    }
    $result = PyLong_FromLong($1);
}
%typemap(in, numinputs=0) (char *buf, size_t len) {
    $2 = 1 << 20; /* only written pages take physical memory */
    if (($1 = malloc($2)) == NULL) {
        PyErr_NoMemory();
        SWIG_fail;
    }
    *$1 = 0;
}
%typemap(argout) (char *buf, size_t len) {
    Py_XDECREF($result);
    $result = PyUnicode_DecodeUTF8($1, (Py_ssize_t)strlen($1), "replace");
}
%typemap(freearg) (char *buf, size_t len) "free($1);"
%typemap(in, numinputs=0) const char ** (const char *text = NULL) "$1 = (char **)&text;"
%typemap(argout) const char ** {
    PyObject *text = PyUnicode_FromString(*$1 ? *$1 : "");
    if (text == NULL) SWIG_fail;
    $result = SWIG_Python_AppendOutput($result, text);
}
%typemap(in, numinputs=0) dtrain_event_t *event_p (dtrain_event_t event) "$1 = &event;"
%typemap(argout) dtrain_event_t *event_p {
    Py_XDECREF($result);
    $result = Py_BuildValue("iKiK", (int)$1->status, (unsigned long long)$1->bytes, (int)$1->peer,
                            (unsigned long long)$1->version);
}

%typemap(out) int32_t dtrain_context_progress {
    if ($1 < 0) {
        raise_last_error($1);
        SWIG_fail;
    }
    $result = PyLong_FromLong($1);
}

%typemap(in, numinputs=0) (const char **name_p, uint32_t *dtype_p, uint64_t *count_p)
    (const char *name, uint32_t dtype, uint64_t count) {
    $1 = (char **)&name;
    $2 = &dtype;
    $3 = &count;
}
%typemap(argout) (const char **name_p, uint32_t *dtype_p, uint64_t *count_p) {
    Py_XDECREF($result);
    $result = Py_BuildValue("sIK", *$1, *$2, (unsigned long long)*$3);
}
%typemap(in, numinputs=0) uint32_t *role_p (uint32_t role = 0) "$1 = &role;"
%typemap(argout) uint32_t *role_p "$result = PyLong_FromUnsignedLong(*$1);"
%typemap(in, numinputs=0) uint64_t *step_p (uint64_t step = 0) "$1 = &step;"
%typemap(argout) uint64_t *step_p {
    Py_XDECREF($result);
    $result = PyLong_FromUnsignedLongLong(*$1);
}
%typemap(in, numinputs=0) double *weight_p (double number = 0), double *gap_p (double number = 0),
         double *norm_p (double number = 0) "$1 = &number;"
%typemap(argout) double *weight_p, double *gap_p, double *norm_p {
    Py_XDECREF($result);
    $result = PyFloat_FromDouble(*$1);
}
%typemap(in) (void *const *arrays, const uint64_t *counts, const uint32_t *dtypes, uint32_t array_count)
    (Arrays taken = {0}) {
    if (!arrays_take(&taken, $input, "arrays")) SWIG_fail;
    $1 = taken.data;
    $2 = taken.counts;
    $3 = taken.dtypes;
    $4 = taken.count;
}
%typemap(argout) (void *const *arrays, const uint64_t *counts, const uint32_t *dtypes, uint32_t array_count)
    "if (*arg6 > arg5) arrays_change(&taken$argnum); /* else nothing was scaled */"
%typemap(freearg) (void *const *arrays, const uint64_t *counts, const uint32_t *dtypes, uint32_t array_count)
    "arrays_give_back(&taken$argnum);"
%typemap(in) (const char *const *paths, uint32_t count) (PyObject *list = NULL,
                                                         const char **texts = NULL) {
    if ((list = PySequence_Fast($input, "paths: a list is needed")) == NULL) SWIG_fail;
    $2 = (uint32_t)PySequence_Fast_GET_SIZE(list);
    if ((texts = PyMem_Calloc((size_t)$2 + 1, sizeof *texts)) == NULL) {
        PyErr_NoMemory();
        SWIG_fail;
    }
    for (uint32_t i = 0; i < $2; i++)
        if ((texts[i] = PyUnicode_AsUTF8(PySequence_Fast_GET_ITEM(list$argnum, i))) == NULL) SWIG_fail;
    $1 = (char **)texts;
}
%typemap(argout) (const char *const *paths, uint32_t count) ""
%typemap(freearg) (const char *const *paths, uint32_t count) {
    PyMem_Free(texts$argnum);
    Py_XDECREF(list$argnum);
}
%typemap(in) (const void *data, uint64_t length) (Py_buffer view = {0}) {
    if (PyObject_GetBuffer($input, &view, PyBUF_SIMPLE) != 0) {
        PyErr_Format(PyExc_TypeError, "record: bytes are needed, not %s", Py_TYPE($input)->tp_name);
        SWIG_fail;
    }
    $1 = view.buf;
    $2 = (uint64_t)view.len;
}
%typemap(argout) (const void *data, uint64_t length) ""
%typemap(freearg) (const void *data, uint64_t length) "PyBuffer_Release(&view$argnum);"
%typemap(in, numinputs=0) int32_t *saved_p (int32_t saved = 0) "$1 = &saved;"
%typemap(argout) int32_t *saved_p {
    Py_XDECREF($result);
    $result = PyBool_FromLong(*$1);
}
%typemap(in) (dtrain_table_t *const *tables, uint32_t count) (PyObject *list = NULL, Py_ssize_t entered = 0,
                                                              dtrain_table_t *tables[64]) {
    if ((list = PySequence_Fast($input, "tables: a list is needed")) == NULL) SWIG_fail;
    if (PySequence_Fast_GET_SIZE(list) > 64) {
        PyErr_SetString(PyExc_ValueError, "at most 64 tables at a time");
        SWIG_fail;
    }
    for (; entered < PySequence_Fast_GET_SIZE(list); entered++) {
        Handle *handle = handle_enter(PySequence_Fast_GET_ITEM(list, entered), "dtrain_table_t");
        if (handle == NULL) SWIG_fail;
        tables[entered] = (dtrain_table_t *)handle->pointer;
    }
    $1 = tables;
    $2 = (uint32_t)entered;
}
%typemap(argout) (dtrain_table_t *const *tables, uint32_t count) ""
%typemap(freearg) (dtrain_table_t *const *tables, uint32_t count) {
    for (Py_ssize_t i = 0; i < entered$argnum; i++)
        handle_leave(PyCapsule_GetPointer(PySequence_Fast_GET_ITEM(list$argnum, i),
                                          "dtrain_table_t"));
    Py_XDECREF(list$argnum);
}

/* ---- structs: constructors check for lack of memory and initialize parameters ---- */
%define %made_in_memory
"$action
if (result == NULL) {
    PyErr_NoMemory();
    SWIG_fail;
}"
%enddef
%exception dtrain_event::dtrain_event %made_in_memory
%exception dtrain_compression_stats::dtrain_compression_stats %made_in_memory
%define %params(name)
%exception name::name %made_in_memory
%extend name {
    name() {
        struct name *params = (struct name *)malloc(sizeof *params);
        if (params != NULL) DTRAIN_INIT(params);
        return params;
    }
}
%enddef
%params(dtrain_op_params)
%params(dtrain_comm_params)
%params(dtrain_reform_params)
%params(dtrain_mem_params)
%params(dtrain_device_stats)
%params(dtrain_gradients_params)
%params(dtrain_gradients_counters)
%params(dtrain_compressor_params)
%params(dtrain_graph_params)
%params(dtrain_reader_params)
%params(dtrain_segment)
%params(dtrain_table_params)
%params(dtrain_table_server)
%params(dtrain_table_stats)
%params(dtrain_checkpoint_params)
%params(dtrain_server_params)
/* Arrays in structs, by address: the package keeps them alive during the call. */
%typemap(in) const dtrain_segment_t *segments, const uint32_t *weights,
             const int32_t *in_neighbors, const double *in_weights, const int32_t *out_neighbors,
             const uint64_t *matrices {
    if (($1 = PyLong_AsVoidPtr($input)) == NULL && PyErr_Occurred()) SWIG_fail;
}
%typemap(out) uint64_t [ANY] {
    if (($result = PyList_New($1_dim0)) == NULL) SWIG_fail;
    for (Py_ssize_t i = 0; i < $1_dim0; i++) {
        PyObject *number = PyLong_FromUnsignedLongLong($1[i]);
        if (number == NULL) SWIG_fail;
        PyList_SET_ITEM($result, i, number);
    }
}

/* ---- callbacks: any callable, which the package keeps alive as long as it may be called ---- */
%typemap(in) dtrain_oob_allgather_fn "$1 = $input == Py_None ? NULL : call_allgather;"
%typemap(in) dtrain_place_fn "$1 = $input == Py_None ? NULL : call_place;"
%typemap(in) void *oob_arg, void *place_arg "$1 = $input;"
%typemap(in) (dtrain_log_fn sink, void *arg) {
    $1 = $input == Py_None ? NULL : call_log;
    $2 = $input;
}

/* ---- calls: `shape` first finds counts and types; the call runs without the GIL ---- */
%exception {
    Py_BEGIN_ALLOW_THREADS
    $action
    Py_END_ALLOW_THREADS
}
%define %quick(name) /* no lock, no wait */
%exception name "$action"
%enddef
%quick(dtrain_version)
%quick(dtrain_version_string)
%quick(dtrain_status_name)
%quick(dtrain_status_text)
%quick(dtrain_comm_rank)
%quick(dtrain_comm_size)
%quick(dtrain_cq_fd)

%define %operation(name, shape, with_result)
%{
enum { RESULT_##name = with_result };
%}
%exception name {
    if (!(shape) || (call1->on_gpu && !gpus_known(handle1))) SWIG_fail;
    Py_BEGIN_ALLOW_THREADS
    $action
    Py_END_ALLOW_THREADS
}
%enddef
%operation(dtrain_allreduce, alike(call1, &arg3, &arg4, &arg5), 0)
%operation(dtrain_reduce, is_root(arg1, arg7) ? alike(call1, &arg3, &arg4, &arg5)
                                             : whole(call1, &arg4, &arg5), 0)
%operation(dtrain_reduce_scatter, blocks(call1, dtrain_comm_size(arg1), 1, &arg4, &arg5), 0)
%operation(dtrain_reduce_scatterv, ragged(call1, arg1, 0, 1, &arg5), 0)
%operation(dtrain_allgather, blocks(call1, 1, dtrain_comm_size(arg1), &arg4, &arg5), 0)
%operation(dtrain_allgatherv, ragged(call1, arg1, 1, 1, &arg6), 0)
%operation(dtrain_broadcast, whole(call1, &arg3, &arg4) && (!is_root(arg1, arg5) || unwritten(call1)), 0)
%operation(dtrain_gather, blocks(call1, 1, is_root(arg1, arg6) ? dtrain_comm_size(arg1) : 0,
                                 &arg4, &arg5), 0)
%operation(dtrain_gatherv, ragged(call1, arg1, 1, is_root(arg1, arg7), &arg6), 0)
%operation(dtrain_scatter, blocks(call1, is_root(arg1, arg6) ? dtrain_comm_size(arg1) : 0, 1,
                                  &arg4, &arg5), 0)
%operation(dtrain_scatterv, ragged(call1, arg1, 0, is_root(arg1, arg7), &arg6), 0)
%operation(dtrain_alltoall, blocks(call1, dtrain_comm_size(arg1), dtrain_comm_size(arg1), &arg4,
                                   &arg5), 0)
%operation(dtrain_alltoallv, ragged_alltoall(call1, arg1, &arg8), 0)
%operation(dtrain_barrier, 1, 0)
%operation(dtrain_send, whole(call1, &arg3, &arg4), 0)
%operation(dtrain_recv, whole(call1, &arg3, &arg4), 1)
%operation(dtrain_gradients_submit, alike(call1, &arg4, &arg5, &arg6), 0)
%operation(dtrain_gradients_join, 1, 1)
%operation(dtrain_compressor_allreduce, vectors(call1, handle1, (void **)&arg3), 0)
%operation(dtrain_neighbor_average, alike(call1, &arg3, &arg4, &arg5), 0)
%operation(dtrain_neighbor_allgather, blocks(call1, 1, neighbors(arg1, DTRAIN_GRAPH_IN), &arg4,
                                             &arg5), 0)
%operation(dtrain_neighbor_alltoall, blocks(call1, neighbors(arg1, DTRAIN_GRAPH_OUT),
                                            neighbors(arg1, DTRAIN_GRAPH_IN), &arg4, &arg5), 0)
%operation(dtrain_table_push, values_of(call1, handle1, &arg3), 1)
%operation(dtrain_table_pull, values_of(call1, handle1, &arg3), 1)
%operation(dtrain_table_push_pull, exchanged(call1, handle1, &arg5, &arg3), 1)
%operation(dtrain_table_set, values_of(call1, handle1, &arg3), 1)
%operation(dtrain_table_set_rate, 1, 0)
%operation(dtrain_table_set_updates, 1, 0)
%operation(dtrain_table_pull_state, state_of(call1, arg1, arg2, &arg4), 1)
%operation(dtrain_table_set_state, state_of(call1, arg1, arg2, &arg4), 1)
%operation(dtrain_table_clock, 1, 0)
%operation(dtrain_table_push_rows, values_of(call1, handle1, &arg3), 1)
%operation(dtrain_table_pull_rows, values_of(call1, handle1, &arg3), 1)
%operation(dtrain_table_push_pull_rows, exchanged(call1, handle1, &arg5, &arg3), 1)
%operation(dtrain_table_set_rows, values_of(call1, handle1, &arg3), 1)
%operation(dtrain_table_erase_rows, keys_of(call1, &arg3), 0)
%operation(dtrain_table_count_rows, 1, 1)
%operation(dtrain_table_pull_state_rows, state_of(call1, arg1, arg2, &arg4), 1)
%operation(dtrain_table_set_state_rows, state_of(call1, arg1, arg2, &arg4), 1)
%exception dtrain_table_locate {
    if (!keys_of(call1, &arg3)) SWIG_fail;
    if ((arg4 = PyMem_Calloc(arg3 + 1, sizeof *arg4)) == NULL) {
        PyErr_NoMemory();
        SWIG_fail;
    }
    Py_BEGIN_ALLOW_THREADS
    $action
    Py_END_ALLOW_THREADS
}
%exception dtrain_server_weights {
    if ((arg4 = PyMem_Calloc((size_t)arg2 + arg3 + 1, sizeof *arg4)) == NULL) {
        PyErr_NoMemory();
        SWIG_fail;
    }
    $action
}
%operation(dtrain_table_set_ready, 1, 0)
%operation(dtrain_table_wait_ready, 1, 0)

/* ---- exclusive calls: the handle is closed unless they fail ---- */
%define %destroys(name)
%exception name {
    void *claimed;
    if (!handle_claim(handle1, &claimed)) SWIG_fail;
    Py_BEGIN_ALLOW_THREADS
    $action
    Py_END_ALLOW_THREADS
    if (result < 0) handle1->pointer = claimed;
}
%enddef
%destroys(dtrain_context_destroy)
%destroys(dtrain_comm_destroy)
%destroys(dtrain_cq_destroy)
%destroys(dtrain_mem_deregister)
%destroys(dtrain_gradients_destroy)
%destroys(dtrain_compressor_destroy)
%destroys(dtrain_table_destroy)
%destroys(dtrain_server_destroy)
%define %frees(name)
%exception name {
    void *claimed;
    if (!handle_claim(handle1, &claimed)) SWIG_fail;
    $action
}
%enddef
%frees(dtrain_options_destroy)
%frees(dtrain_graph_destroy)
%frees(dtrain_reader_close)
%frees(dtrain_writer_close) /* in any case */

/* ---- functions of the package beside the C API ---- */
%ignore dtrain_request_free; /* done by the request's capsule */
%ignore dtrain_request_wait;
%ignore dtrain_request_start;
%exception request_wait;
%exception request_start;
%exception request_result;
%exception use_package;
%exception poll_tags;
%exception poll_requests;
%exception request_address;
%exception describe_handle;
%exception handle_address;
%exception segment_bytes;
%exception failed_ranks;
%exception graph_neighbors;
%exception next_record;
%inline %{
static PyObject *use_package(PyObject *errors, PyObject *arrays, PyObject *results, PyObject *op,
                             PyObject *find_op, PyObject *typed, PyObject *check_gpus) {
    Py_INCREF(errors);
    Py_INCREF(arrays);
    Py_INCREF(results);
    Py_INCREF(op);
    Py_INCREF(find_op);
    Py_INCREF(typed);
    Py_INCREF(check_gpus);
    gpu_checker = check_gpus;
    typed_type = (PyTypeObject *)typed;
    op_type = (PyTypeObject *)op;
    op_finder = find_op;
    error_factory = errors;
    array_adapter = arrays;
    result_type = results;
    Py_RETURN_NONE;
}
static PyObject *failed_ranks(PyObject *comm) {
    Handle *handle = handle_enter(comm, "dtrain_comm_t");
    if (handle == NULL) return NULL;
    const int32_t size = dtrain_comm_size(handle->pointer);
    int32_t *ranks = PyMem_Calloc((size_t)size, sizeof *ranks), count = 0;
    if (ranks != NULL) {
        Py_BEGIN_ALLOW_THREADS
        count = dtrain_comm_failed(handle->pointer, ranks, size);
        Py_END_ALLOW_THREADS
    }
    handle_leave(handle);
    if (count < 0) raise_last_error(count);
    PyObject *list = ranks == NULL ? PyErr_NoMemory() : count < 0 ? NULL : PyList_New(count);
    for (int32_t i = 0; list != NULL && i < count; i++)
        PyList_SET_ITEM(list, i, PyLong_FromLong(ranks[i]));
    PyMem_Free(ranks);
    return list;
}
/* {rank: weight of the edge} */
static PyObject *graph_neighbors(PyObject *graph, uint32_t direction) {
    Handle *handle = handle_enter(graph, "dtrain_graph_t");
    if (handle == NULL) return NULL;
    const int32_t count = dtrain_graph_neighbors(handle->pointer, direction, NULL, NULL, 0);
    int32_t *ranks = PyMem_Calloc((size_t)count + 1, sizeof *ranks);
    double *weights = PyMem_Calloc((size_t)count + 1, sizeof *weights);
    PyObject *found = ranks == NULL || weights == NULL ? PyErr_NoMemory() : PyDict_New();
    if (found != NULL) dtrain_graph_neighbors(handle->pointer, direction, ranks, weights, count);
    for (int32_t i = 0; found != NULL && i < count; i++) {
        PyObject *rank = PyLong_FromLong(ranks[i]), *weight = PyFloat_FromDouble(weights[i]);
        if (rank == NULL || weight == NULL || PyDict_SetItem(found, rank, weight) != 0)
            Py_CLEAR(found);
        Py_XDECREF(rank);
        Py_XDECREF(weight);
    }
    PyMem_Free(ranks);
    PyMem_Free(weights);
    handle_leave(handle);
    return found;
}
/* A copy of the next record; None at the end. A call of another thread could free the record
 * meanwhile. */
static PyObject *next_record(PyObject *reader) {
    Handle *handle = handle_enter(reader, "dtrain_reader_t");
    if (handle == NULL) return NULL;
    const void *data = NULL;
    uint64_t length = 0;
    dtrain_status_t status = DTRAIN_ERR_BUSY;
    PyObject *record = NULL;
    if (handle->users > 1) {
        raise_error(status, "another thread is reading; each thread needs a separate reader", -1);
    } else {
        Py_BEGIN_ALLOW_THREADS
        status = dtrain_reader_next(handle->pointer, &data, &length);
        Py_END_ALLOW_THREADS
        if (status == DTRAIN_OK)
            record = PyBytes_FromStringAndSize(data, (Py_ssize_t)length);
        else if (status == DTRAIN_ERR_NOT_FOUND)
            Py_INCREF(record = Py_None);
        else
            raise_last_error(status);
    }
    handle_leave(handle);
    return record;
}
/* Whether the operation has finished by then; request_result() raises its error. */
static PyObject *request_wait(PyObject *request, int64_t timeout_ns) {
    Call *call = call_of(request);
    if (call == NULL) return NULL;
    const dtrain_status_t status = call_wait(call, timeout_ns);
    if (status == INTERRUPTED) return NULL;
    if (status < 0) {
        raise_last_error(status);
        if (!call_finished(call)) return NULL; /* the wait failed, not the operation */
        PyErr_Clear();
    }
    return PyBool_FromLong(status != DTRAIN_IN_PROGRESS);
}
static PyObject *request_result(PyObject *request) {
    Call *call = call_of(request);
    return call == NULL ? NULL : call_result(call);
}
static PyObject *request_start(PyObject *request) {
    Call *call = call_of(request);
    if (call == NULL) return NULL;
    dtrain_status_t status;
    Py_BEGIN_ALLOW_THREADS
    status = dtrain_request_start(&call->request, 1);
    Py_END_ALLOW_THREADS
    if (status < 0) raise_last_error(status);
    if (status < 0) return NULL;
    call_changes(call);
    Py_RETURN_NONE;
}
/* Sets the dtype and width of a table or compressor, for the checks of its calls. */
static PyObject *describe_handle(PyObject *capsule, uint32_t dtype, uint64_t width) {
    Handle *handle = PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule));
    handle->dtype = dtype;
    handle->width = width;
    Py_RETURN_NONE;
}
/* The address of the object, for a library that calls the C API itself. Whoever keeps it has to let go before
 * the object is closed: a Child of the object is closed first. */
static PyObject *handle_address(PyObject *capsule) {
    const char *type = PyCapsule_CheckExact(capsule) ? PyCapsule_GetName(capsule) : NULL;
    Handle *handle = handle_enter(capsule, type == NULL ? "dtrain_object_t" : type);
    if (handle == NULL) return NULL;
    PyObject *address = PyLong_FromVoidPtr(handle->pointer);
    handle_leave(handle);
    return address;
}
static PyObject *segment_bytes(const dtrain_segment_t *segment) {
    return PyBytes_FromStringAndSize((const char *)segment, sizeof *segment);
}
/* The user tags of up to 64 operations that have ended. */
static PyObject *poll_tags(PyObject *queue) {
    Handle *handle = handle_enter(queue, "dtrain_cq_t");
    if (handle == NULL) return NULL;
    dtrain_event_t events[64];
    int32_t count;
    Py_BEGIN_ALLOW_THREADS
    count = dtrain_cq_poll(handle->pointer, events, 64, 0);
    Py_END_ALLOW_THREADS
    handle_leave(handle);
    if (count < 0) {
        raise_last_error(count);
        return NULL;
    }
    PyObject *tags = PyList_New(count);
    for (int32_t i = 0; tags != NULL && i < count; i++)
        PyList_SET_ITEM(tags, i, PyLong_FromUnsignedLongLong(events[i].user_tag));
    return tags;
}
/* The addresses of the requests of up to 64 operations that have ended; waits up to timeout_ns for
 * the first. A request may have been freed since, and its address belong to another one. */
static PyObject *poll_requests(PyObject *queue, int64_t timeout_ns) {
    Handle *handle = handle_enter(queue, "dtrain_cq_t");
    if (handle == NULL) return NULL;
    dtrain_event_t events[64];
    int32_t count;
    Py_BEGIN_ALLOW_THREADS
    count = dtrain_cq_poll(handle->pointer, events, 64, timeout_ns);
    Py_END_ALLOW_THREADS
    handle_leave(handle);
    if (count < 0) {
        raise_last_error(count);
        return NULL;
    }
    PyObject *requests = PyList_New(count);
    for (int32_t i = 0; requests != NULL && i < count; i++)
        PyList_SET_ITEM(requests, i, PyLong_FromVoidPtr(events[i].request));
    return requests;
}
static PyObject *request_address(PyObject *request) {
    Call *call = call_of(request);
    return call == NULL ? NULL : PyLong_FromVoidPtr(call->request);
}
%}
%{
/* (handle, params, mode, function, arguments...): function(handle, arguments..., params, mode). For
 * functools.partial: a Python frame and two copies of the arguments would cost as much as a small
 * operation. */
static PyObject *call_operation(PyObject *module, PyObject *const *given, Py_ssize_t count) {
    enum { FIRST = 4, AROUND = 3 };
    if (count < FIRST) return PyErr_Format(PyExc_TypeError, "call_operation: %zd arguments", count);
    PyObject *arguments = PyTuple_New(count - FIRST + AROUND);
    if (arguments == NULL) return NULL;
    for (Py_ssize_t i = 0; i < count; i++)
        if (i != FIRST - 1) Py_INCREF(given[i]);
    PyTuple_SET_ITEM(arguments, 0, given[0]);
    for (Py_ssize_t i = FIRST; i < count; i++)
        PyTuple_SET_ITEM(arguments, i - FIRST + 1, given[i]);
    PyTuple_SET_ITEM(arguments, count - FIRST + 1, given[1]);
    PyTuple_SET_ITEM(arguments, count - FIRST + 2, given[2]);
    PyObject *result = PyObject_CallObject(given[FIRST - 1], arguments);
    Py_DECREF(arguments);
    return result;
}
static PyMethodDef own_functions[] = {
    {"call_operation", (PyCFunction)(void (*)(void))call_operation, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL}};
%}
%init %{
    if (PyModule_AddFunctions(m, own_functions) != 0) return NULL;
%}
%ignore dtrain_cq_poll;
%ignore dtrain_comm_failed;
%ignore dtrain_graph_neighbors;
%ignore dtrain_reader_next;
