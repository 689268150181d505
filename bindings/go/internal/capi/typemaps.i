/* How Go values become arguments of the C API. Handles are uintptr, memory unsafe.Pointer, a failed
 * status a *Failure with its text, which is fetched in the same call: the next one may run in
 * another thread. The operations' (params, request_p) are one *Call (calls.h).
 * SPDX-License-Identifier: Apache-2.0 */
%insert(cgo_comment_typedefs) %{
#cgo pkg-config: dtrain
%}
%go_import("runtime", "unsafe")
%{
#include "callbacks.h"
#include "calls.h"
%}

%rename("%(strip:[dtrain_])s") "";

/* ---- numbers ---- */
%typemap(gotype) int32_t "int32"
%typemap(gotype) uint32_t "uint32"
/* Constants are read from the header by cgo, which makes constants of them. */
%rename("$ignore", %$isenumitem) "";

/* ---- pointers: numbers for C, except memory of Go's, which stays where it is during the call ---- */
%typemap(gotype) SWIGTYPE *, SWIGTYPE ** "uintptr"
%define %memory(types...)
%typemap(gotype) types "unsafe.Pointer"
%typemap(imtype) types "uintptr"
%typemap(goin) types "	$result = address($input)"
%typemap(goargout) types "	runtime.KeepAlive(arg$argnum)"
%typemap(goout) types "	$result = Memory($input)"
%enddef
%memory(void *, const void *, const float *send, float *recv)
%memory(const uint64_t *, uint64_t *, const int32_t *ranks, int32_t *, uint32_t *, double *,
        dtrain_event_t *)
%memory(char *buf)
%typemap(in) char *buf "$1 = (char *)$input;"
%typemap(freearg) char *buf ""
/* Outputs: pointers to variables of Go's. */
%define %handle(type)
%memory(type **)
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
%memory(void *const *arrays, const uint32_t *dtypes)
%memory(const void **, const char **, dtrain_table_t *const *, dtrain_request_t *const *)

/* ---- outcomes ---- */
%typemap(gotype) dtrain_status_t "*Failure"
%typemap(imtype) dtrain_status_t "uint64"
%typemap(out) dtrain_status_t "$result = (uintptr_t)failure_of($1);"
%typemap(goout) dtrain_status_t "	$result = failure($input)"
%typemap(gotype) dtrain_status_t status "int32"
%typemap(imtype) dtrain_status_t status "int32"

%define %operation(arguments, made)
%typemap(gotype) arguments "*Call"
%typemap(imtype) arguments "uintptr"
%typemap(goin) arguments "	$result = address(unsafe.Pointer($input))"
%typemap(goargout) arguments "	runtime.KeepAlive(arg$argnum)"
%typemap(in) arguments (Call *call, dtrain_request_t *request = NULL) {
    call = (Call *)$input;
    $1 = (dtrain_op_params_t *)call_params(call);
    made = &request;
}
%typemap(argout) arguments
    "if (result == DTRAIN_OK) _swig_go_result = (uintptr_t)call_end(call$argnum, request$argnum);"
%enddef
%operation((const dtrain_op_params_t *params, dtrain_request_t **request_p), $2)
/* The last rank is the event's peer. */
%operation((const dtrain_op_params_t *params, int32_t *last_p, dtrain_request_t **request_p), $3)
%ignore dtrain_op_params;
%ignore dtrain_event;

/* ---- parameter structs: made ready by their constructors ---- */
%define %params(name)
%extend name {
    name() {
        struct name *params = (struct name *)malloc(sizeof *params);
        if (params != NULL) DTRAIN_INIT(params);
        return params;
    }
}
%enddef
%params(dtrain_comm_params)
%params(dtrain_reform_params)
%params(dtrain_mem_params)
%params(dtrain_device_stats)
%params(dtrain_gradients_params)
%params(dtrain_gradients_counters)
%params(dtrain_compressor_params)
%params(dtrain_graph_params)
%params(dtrain_segment)
%params(dtrain_table_params)
%params(dtrain_table_server)
%params(dtrain_table_stats)
%params(dtrain_checkpoint_params)
%params(dtrain_server_params)
%params(dtrain_reader_params)

/* ---- callbacks: numbers of functions of Go's (callbacks.go); 0 is none ---- */
%typemap(gotype) (dtrain_log_fn sink, void *arg) "uint64"
%typemap(imtype) (dtrain_log_fn sink, void *arg) "uint64"
%typemap(goin) (dtrain_log_fn sink, void *arg) "	$result = $input"
%typemap(goargout) (dtrain_log_fn sink, void *arg) " "
%typemap(in) (dtrain_log_fn sink, void *arg) {
    $1 = $input == 0 ? NULL : callback_log;
    $2 = (void *)(uintptr_t)$input;
}
%ignore oob;
%ignore oob_arg;
%ignore place;
%ignore place_arg;
%extend dtrain_comm_params {
    void set_oob(uint64_t number) {
        $self->oob = callback_allgather;
        $self->oob_arg = (void *)(uintptr_t)number;
    }
}
%extend dtrain_server_params {
    void set_oob(uint64_t number) {
        $self->oob = callback_allgather;
        $self->oob_arg = (void *)(uintptr_t)number;
    }
}
%extend dtrain_table_params {
    void set_place(uint64_t number) {
        $self->place = callback_place;
        $self->place_arg = (void *)(uintptr_t)number;
    }
}
