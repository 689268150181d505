/* SWIG typemaps of the C API for the Java package, in package-private classes. Pointers are numbers
 * (Java's long), new objects are returned, and failed calls throw. The Java package checks buffers,
 * since it knows their lengths.
 * SPDX-License-Identifier: Apache-2.0 */
%{
#include "callbacks.h"
#include "calls.h"
%}
%pragma(java) moduleclassmodifiers="final class"
%pragma(java) jniclassclassmodifiers="final class"
%pragma(java) jniclasscode=%{
    static {
        Loader.load();
    }

    /** The address of a direct buffer's first element. */
    static native long address(java.nio.Buffer buffer);

    /** A view of memory of C, valid as long as that memory. */
    static native java.nio.ByteBuffer memory(long address, long bytes);
%}
%rename("$ignore", %$isconstant) ""; /* Java enums have them; a test compares both */
%rename("$ignore", %$isenumitem) "";

/* ---- numbers ---- */
%apply int { uint32_t };
%apply long long { int64_t, uint64_t, size_t };

/* ---- pointers ---- */
%define %address(type)
%typemap(jni) type "jlong"
%typemap(jtype) type "long"
%typemap(jstype) type "long"
%typemap(javain) type "$javainput"
%typemap(javaout) type "{ return $jnicall; }"
%typemap(in) type "$1 = ($1_ltype)(intptr_t)$input;"
%typemap(out) type "$result = (jlong)(intptr_t)$1;"
%typemap(freearg) type ""
%enddef
%define %handle(type)
%address(type *)
%address(const type *)
%typemap(in, numinputs=0) type ** (type *made = NULL) "$1 = &made;"
%typemap(argout) type ** "if ($result == 0) $result = (jlong)(intptr_t)*$1;"
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
%address(dtrain_request_t *)
%address(dtrain_request_t *const *)
%address(dtrain_table_t *const *)
%address(dtrain_event_t *)
%address(void *)
%address(const void *)
%address(const void **)
%address(void *const *)
%address(const float *)
%address(float *)
%address(double *)
%address(const double *)
%address(int32_t *)
%address(const int32_t *)
%address(uint32_t *)
%address(const uint32_t *)
%address(uint64_t *)
%address(const uint64_t *)
%address(const char **)
%address(const char *const *)
%address(char *buf)
%address(const char *function)
%typemap(memberin) const char *function "$1 = $input;"
%address(const dtrain_segment_t *)
%address(uint64_t [ANY])
%address(const dtrain_op_params_t *params)
%address(const dtrain_op_params_t *op)
%address(const dtrain_comm_params_t *params)
%address(const dtrain_reform_params_t *params)
%address(const dtrain_mem_params_t *params)
%address(const dtrain_gradients_params_t *params)
%address(const dtrain_compressor_params_t *params)
%address(const dtrain_graph_params_t *params)
%address(const dtrain_table_params_t *params)
%address(const dtrain_checkpoint_params_t *params)
%address(const dtrain_server_params_t *params)
%address(const dtrain_reader_params_t *params)
%address(dtrain_gradients_counters_t *stats)
%address(dtrain_compression_stats_t *stats_p)
%address(dtrain_table_server_t *out)
%address(dtrain_table_stats_t *stats)
%address(dtrain_device_stats_t *stats)

/* ---- texts, as bytes of UTF-8 with a zero at their end ---- */
%typemap(jni) const char * "jbyteArray"
%typemap(jtype) const char * "byte[]"
%typemap(jstype) const char * "String"
%typemap(javain) const char * "Text.bytes($javainput)"
%typemap(javaout) const char * "{ return Text.of($jnicall); }"
%typemap(in) const char * {
    if ($input != NULL) {
        $1 = (char *)(*jenv)->GetByteArrayElements(jenv, $input, NULL);
        if ($1 == NULL) return $null;
    }
}
%typemap(freearg) const char * {
    if ($1 != NULL) (*jenv)->ReleaseByteArrayElements(jenv, $input, (jbyte *)$1, JNI_ABORT);
}
%typemap(out) const char * "$result = bytes_of_text(jenv, $1);"

/* ---- result of a call: an error (< 0), a new object, or else the status ---- */
%typemap(jni) dtrain_status_t "jlong"
%typemap(jtype) dtrain_status_t "long"
%typemap(jstype) dtrain_status_t "long"
%typemap(out) dtrain_status_t "$result = $1;"
%typemap(javaout) dtrain_status_t "{ return Failures.check($jnicall); }"
%typemap(javaout) dtrain_status_t dtrain_request_wait, dtrain_status_t dtrain_request_test,
                  dtrain_status_t dtrain_request_result "{ return $jnicall; }"
%typemap(javain) dtrain_status_t "$javainput"
%typemap(in) dtrain_status_t "$1 = (dtrain_status_t)$input;"
%typemap(javaout) int32_t dtrain_context_progress, int32_t dtrain_cq_poll,
                  int32_t dtrain_comm_failed, int32_t dtrain_comm_newcomers, int32_t dtrain_graph_neighbors
    "{ return (int) Failures.check($jnicall); }"

/* An operation's request, or 0 if the call has waited for it, as calls.h decides. */
%typemap(jni) (const dtrain_op_params_t *params, dtrain_request_t **request_p) "jlong"
%typemap(jtype) (const dtrain_op_params_t *params, dtrain_request_t **request_p) "long"
%typemap(jstype) (const dtrain_op_params_t *params, dtrain_request_t **request_p) "long"
%typemap(javain) (const dtrain_op_params_t *params, dtrain_request_t **request_p) "$javainput"
%typemap(in) (const dtrain_op_params_t *params, dtrain_request_t **request_p)
    (dtrain_request_t *request = NULL) {
    $1 = (dtrain_op_params_t *)(intptr_t)$input;
    $2 = &request;
}
%typemap(argout) (const dtrain_op_params_t *params, dtrain_request_t **request_p)
    "if ($result == 0) $result = finish_or_return($1, *$2);"
%typemap(in, numinputs=0) dtrain_request_t **request_p (dtrain_request_t *request = NULL)
    "$1 = &request;"
%typemap(argout) dtrain_request_t **request_p
    "if ($result == 0) $result = (jlong)(intptr_t)*$1;"

/* ---- callbacks, by their numbers in the class Callbacks; 0: none ---- */
%define %upcall(type, function)
%address(type)
%typemap(in) type "$1 = $input == 0 ? NULL : function;"
%enddef
%upcall(dtrain_oob_allgather_fn, call_allgather)
%upcall(dtrain_place_fn, call_place)
%typemap(jni) (dtrain_log_fn sink, void *arg) "jlong"
%typemap(jtype) (dtrain_log_fn sink, void *arg) "long"
%typemap(jstype) (dtrain_log_fn sink, void *arg) "long"
%typemap(javain) (dtrain_log_fn sink, void *arg) "$javainput"
%typemap(in) (dtrain_log_fn sink, void *arg) {
    $1 = $input == 0 ? NULL : call_log;
    $2 = (void *)(intptr_t)$input;
}

/* ---- parameter structs: views of memory that Java's Room owns ---- */
%nodefaultctor;
%nodefaultdtor;
%typemap(javaclassmodifiers) SWIGTYPE "final class"
%typemap(javafinalize) SWIGTYPE ""
%typemap(javabody) SWIGTYPE %{
    private final long swigCPtr;

    $javaclassname(Room room) {
        this(room.address());
    }

    $javaclassname(long address) {
        swigCPtr = address;
    }
%}
%typemap(javadestruct, methodname="delete", methodmodifiers="") SWIGTYPE ""
%define %params(tag, name)
%rename(name) tag;
%extend tag {
    static size_t bytes(void) { return sizeof(struct tag); }
    void prepare(void) { DTRAIN_INIT($self); }
}
%enddef
%ignore dtrain_event; /* see Events */
%params(dtrain_op_params, OpParams)
%params(dtrain_comm_params, CommParams)
%params(dtrain_reform_params, ReformParams)
%params(dtrain_mem_params, MemParams)
%params(dtrain_gradients_params, GradientsParams)
%params(dtrain_gradients_counters, GradientsCounters)
%params(dtrain_compressor_params, CompressorParams)
%params(dtrain_graph_params, GraphParams)
%params(dtrain_segment, SegmentParams)
%params(dtrain_table_params, TableParams)
%params(dtrain_table_server, TableServerParams)
%params(dtrain_checkpoint_params, CheckpointParams)
%params(dtrain_server_params, ServerParams)
%params(dtrain_device_stats, DeviceStatsParams)
%params(dtrain_table_stats, TableStatsParams)
%params(dtrain_reader_params, ReaderParams)
%rename(CompressionStatsParams) dtrain_compression_stats;
%extend dtrain_compression_stats {
    static size_t bytes(void) { return sizeof(struct dtrain_compression_stats); }
}

%inline %{
static const char *text_at(const void *text) { return text; }
%}
