/* Every struct of dtrain.h and dtrain_function.h that may grow, passed once with its tail zero and,
 * where the header has one field more than the library knows (ADDED), once with that set.
 * usage: params FOLDER_FOR_CHECKPOINTS
 * SPDX-License-Identifier: Apache-2.0 */
#include <dtrain_function.h>
#include <stdio.h>
#include <stdlib.h>

static dtrain_context_t *context;
static dtrain_comm_t *comm;
static dtrain_table_t *table;
static const char *const file = "growth.tfrecord";

static const char *error(void) {
    static char text[1024];
    dtrain_last_error(text, sizeof text);
    return text;
}
static void must(int good, const char *what) {
    if (good) return;
    fprintf(stderr, "%s: %s\n", what, error());
    exit(1);
}
static void ok(dtrain_status_t status, const char *what) { must(status == DTRAIN_OK, what); }

#ifdef ADDED
#define SET_ADDED(p, number) ((p)->added = (number))
/* A parameter that the library does not know is refused, never ignored. */
static void refused(dtrain_status_t status, const char *what) {
    must(status == DTRAIN_ERR_UNSUPPORTED && strstr(error(), "use a newer libdtrain"), what);
}
#define TWICE(params, call)                                                                        \
    do {                                                                                           \
        (params)->added = 1;                                                                       \
        refused((call), #call);                                                                    \
        (params)->added = 0;                                                                       \
        ok((call), #call);                                                                         \
    } while (0)
#else
#define SET_ADDED(p, number) (void)(p)
#define TWICE(params, call)  ok((call), #call)
#endif

/* ---- parameters */

static void mem_params(void) {
    static char memory[4096];
    dtrain_mem_params_t params;
    dtrain_mem_t *mem;
    DTRAIN_INIT(&params);
    params.address = memory;
    params.length = sizeof memory;
    TWICE(&params, dtrain_mem_register(context, &params, &mem));
    ok(dtrain_mem_deregister(mem), "deregister");
    params.address = NULL;
    TWICE(&params, dtrain_mem_create(context, &params, &mem));
    ok(dtrain_mem_deregister(mem), "deregister");
}
static void comm_params(void) {
    dtrain_comm_params_t params;
    DTRAIN_INIT(&params);
    params.size = 1;
    TWICE(&params, dtrain_comm_create(context, "env", &params, &comm));
}
static void reform_params(void) { /* of a job that is not elastic */
    dtrain_reform_params_t params;
    dtrain_comm_t *next;
    DTRAIN_INIT(&params);
    SET_ADDED(&params, 0);
#ifdef ADDED
    params.added = 1;
    refused(dtrain_comm_reform(comm, &params, &next), "reform");
    params.added = 0;
#endif
    must(dtrain_comm_reform(comm, &params, &next) == DTRAIN_ERR_STATE, "reform");
}
static void op_params(void) {
    float number = 1;
    dtrain_op_params_t params;
    DTRAIN_INIT(&params);
    params.timeout_ns = INT64_C(10000000000);
    TWICE(&params,
          dtrain_allreduce(comm, &number, &number, 1, DTRAIN_F32, DTRAIN_SUM, &params, NULL));
    must(number == 1, "the sum");
}
static void compressor_params(void) {
    dtrain_compressor_params_t params;
    dtrain_compressor_t *compressor;
    DTRAIN_INIT(&params);
    params.kind = DTRAIN_COMPRESS_F16;
    params.count = 8;
    TWICE(&params, dtrain_compressor_create(comm, &params, &compressor));
    ok(dtrain_compressor_destroy(compressor), "compressor");
}
static void graph_params(void) {
    dtrain_graph_params_t params;
    dtrain_graph_t *graph;
    DTRAIN_INIT(&params);
    params.kind = DTRAIN_GRAPH_FULL;
    TWICE(&params, dtrain_graph_create(comm, &params, &graph));
    dtrain_graph_destroy(graph);
}
static void table_params(void) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.length = 8;
    params.rule = DTRAIN_RULE_SGD;
    TWICE(&params, dtrain_table_create(comm, "growth", &params, &table));
}
static void segment(void) {
    dtrain_segment_t segments[2]; /* an array: the library steps by the caller's size */
    dtrain_table_params_t params;
    dtrain_table_t *segmented;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.length = 8;
    params.row_length = 4;
    params.segments = segments;
    params.segment_count = 2;
    for (uint64_t i = 0; i < 2; i++) {
        DTRAIN_INIT(&segments[i]);
        segments[i].rule = DTRAIN_RULE_SGD;
        segments[i].first = 2 * i;
        segments[i].count = 2;
        segments[i].learning_rate = 0.5;
    }
    TWICE(&segments[1], dtrain_table_create(comm, "segmented", &params, &segmented));
    ok(dtrain_table_destroy(segmented), "segmented");
}
static void checkpoint_params(void) {
    int32_t saved = 0;
    dtrain_checkpoint_params_t params;
    DTRAIN_INIT(&params);
    TWICE(&params, dtrain_checkpoint_save(&table, 1, 7, &params, &saved));
    must(saved == 1, "saved");
}
/* Nobody answers here: it is looked at, and refused, before that. */
static void server_params(void) {
    dtrain_server_params_t params;
    dtrain_server_t *server;
    DTRAIN_INIT(&params);
    params.size = 1;
    params.servers = 1;
    params.index = 1;
    SET_ADDED(&params, 0);
    must(dtrain_server_create(context, "env", &params, &server) == DTRAIN_ERR_INVALID, "server");
#ifdef ADDED
    SET_ADDED(&params, 1);
    refused(dtrain_server_create(context, "env", &params, &server), "server");
#endif
}
static void reader_params(void) {
    dtrain_writer_t *writer;
    dtrain_reader_t *reader;
    dtrain_reader_params_t params;
    ok(dtrain_writer_open(file, &writer), "writer");
    ok(dtrain_writer_close(writer), "writer");
    DTRAIN_INIT(&params);
    TWICE(&params, dtrain_reader_open(&file, 1, &params, &reader));
    dtrain_reader_close(reader);
    remove(file);
}

/* ---- results: what the library does not know stays as it is, and so does what is behind */

#define GUARDED(type)                                                                              \
    struct {                                                                                       \
        type value;                                                                                \
        uint64_t behind;                                                                           \
    } its = {.behind = 42};                                                                        \
    DTRAIN_INIT(&its.value);                                                                       \
    SET_ADDED(&its.value, 43)
#ifdef ADDED
#define UNTOUCHED(what) must(its.behind == 42 && its.value.added == 43, what)
#else
#define UNTOUCHED(what) must(its.behind == 42, what)
#endif

static void gradients(void) {
    GUARDED(dtrain_gradients_counters_t);
    dtrain_gradients_t *queue;
    dtrain_gradients_params_t params;
    DTRAIN_INIT(&params);
    TWICE(&params, dtrain_gradients_create(comm, &params, &queue));
    ok(dtrain_gradients_stats(queue, &its.value), "stats of gradients");
    UNTOUCHED("stats of gradients");
    ok(dtrain_gradients_destroy(queue), "gradients");
}
static void table_server(void) {
    GUARDED(dtrain_table_server_t);
    ok(dtrain_table_describe_server(table, 0, &its.value), "describe");
    must(its.value.elements == 8, "elements");
    UNTOUCHED("describe");
}
static void table_stats(void) {
    GUARDED(dtrain_table_stats_t);
    ok(dtrain_stats_table(table, -1, &its.value), "stats of a table");
    UNTOUCHED("stats of a table");
}
/* The transports that are built in do not count. */
static void device_stats(void) {
    GUARDED(dtrain_device_stats_t);
    must(dtrain_stats_device(context, 0, &its.value) == DTRAIN_ERR_UNSUPPORTED, "device");
    UNTOUCHED("stats of a device");
}

/* ---- functions */

static dtrain_status_t update(void *user, const dtrain_function_batch_t *batch) {
    (void)user;
    must(batch->struct_size > offsetof(dtrain_function_batch_t, error), "batch");
    must(batch->params->struct_size > offsetof(dtrain_table_params_t, rule), "batch->params");
    *(float *)batch->rows[0].values = 5;
    return DTRAIN_OK;
}
static void function(void) {
    dtrain_function_t its;
    dtrain_table_params_t params;
    dtrain_table_t *made;
    float number = 1;
    DTRAIN_INIT(&its);
    its.abi = DTRAIN_FUNCTION_ABI;
    its.name = "growth";
    its.update = update;
    TWICE(&its, dtrain_function_register(context, &its));
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.length = 1;
    params.rule = DTRAIN_RULE_FUNCTION;
    params.function = "growth";
    ok(dtrain_table_create(comm, "function", &params, &made), "table of the function");
    ok(dtrain_table_push(made, 0, 1, &number, NULL, NULL), "push");
    ok(dtrain_table_pull(made, 0, 1, &number, NULL, NULL), "pull");
    must(number == 5, "what the function made");
    ok(dtrain_table_destroy(made), "table of the function");
}

int main(int argc, char **argv) {
    dtrain_options_t *options;
    if (argc != 2) return fprintf(stderr, "usage: params FOLDER\n"), 2;
    ok(dtrain_options_create(&options), "options");
    ok(dtrain_options_set(options, "checkpoint.directory", argv[1]), "checkpoint.directory");
    ok(dtrain_context_create(DTRAIN_API_VERSION, options, &context), "context");
    dtrain_options_destroy(options);
    comm_params();
    mem_params();
    reform_params();
    op_params();
    compressor_params();
    graph_params();
    table_params();
    segment();
    checkpoint_params();
    server_params();
    reader_params();
    gradients();
    table_server();
    table_stats();
    device_stats();
    function();
    ok(dtrain_table_destroy(table), "table");
    ok(dtrain_comm_destroy(comm), "comm");
    ok(dtrain_context_destroy(context), "context");
    return 0;
}
