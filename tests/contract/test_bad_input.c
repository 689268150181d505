/* Wrong arguments of every kind: a status and a text that names the thing; nothing else happens.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "dtrain.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static dtrain_context_t *context;
static dtrain_comm_t *comm; /* of one rank */
static float data[4], other[4];

static void expect(dtrain_status_t got, dtrain_status_t wanted, const char *word, int line) {
    char text[512];
    dtrain_last_error(text, sizeof text);
    if (got != wanted || strstr(text, word) == NULL)
        fail_msg("line %d: %s \"%s\"; wanted %s and \"%s\"", line, dtrain_status_name(got), text,
                 dtrain_status_name(wanted), word);
}
#define FAILS(status, word, call) expect((call), (status), (word), __LINE__)
#define INVALID(word, call)       FAILS(DTRAIN_ERR_INVALID, word, call)
#define OK(call)                  expect((call), DTRAIN_OK, "", __LINE__)

static int make_comm(void **state) {
    (void)state;
    OK(dtrain_context_create(DTRAIN_API_VERSION, NULL, &context));
    OK(dtrain_comm_create(context, "env", NULL, &comm));
    return 0;
}
static int end_comm(void **state) {
    (void)state;
    OK(dtrain_comm_destroy(comm));
    OK(dtrain_context_destroy(context));
    return 0;
}

static void options(void **state) {
    (void)state;
    char value[16], small[2];
    const char *key, *value_p, *text;
    dtrain_options_t *bag = NULL;
    INVALID("options_p", dtrain_options_create(NULL));
    OK(dtrain_options_create(&bag));
    FAILS(DTRAIN_ERR_NOT_FOUND, "op.timeout", dtrain_options_set(bag, "op.timout", "1s"));
    INVALID("op.timeout", dtrain_options_set(bag, "op.timeout", "soon"));
    INVALID("chunk.bytes", dtrain_options_set(bag, "chunk.bytes", "-1"));
    INVALID("chunk.bytes", dtrain_options_set(bag, "chunk.bytes", "99999999999999999999999G"));
    INVALID("manual", dtrain_options_set(bag, "progress", "sometimes"));
    INVALID("options", dtrain_options_set(NULL, "progress", "auto"));
    INVALID("key", dtrain_options_set(bag, NULL, "auto"));
    INVALID("value", dtrain_options_set(bag, "progress", NULL));
    FAILS(DTRAIN_ERR_TRUNCATED, "progress", dtrain_options_get(bag, "progress", small, 2));
    INVALID("", dtrain_options_get(bag, "progress", NULL, 2));
    OK(dtrain_options_get(bag, "progress", value, sizeof value));
    assert_string_equal(value, "auto"); /* nothing was changed */
    FAILS(DTRAIN_ERR_NOT_FOUND, "", dtrain_options_describe(9999, &key, &value_p, &text));
    INVALID("", dtrain_options_describe(0, NULL, &value_p, &text));
    FAILS(DTRAIN_ERR_NOT_FOUND, "/no/such/file", dtrain_options_load(bag, "/no/such/file"));
    dtrain_options_destroy(bag);
    dtrain_options_destroy(NULL);
}

static void contexts(void **state) {
    (void)state;
    dtrain_context_t *fresh = NULL;
    dtrain_options_t *bag = NULL;
    INVALID("context_p", dtrain_context_create(DTRAIN_API_VERSION, NULL, NULL));
    FAILS(DTRAIN_ERR_VERSION, "API 7", dtrain_context_create(7u << 16, NULL, &fresh));
    FAILS(DTRAIN_ERR_VERSION, "API", dtrain_context_create(0, NULL, &fresh));
    OK(dtrain_options_create(&bag));
    OK(dtrain_options_set(bag, "transports", "pigeon"));
    FAILS(DTRAIN_ERR_NOT_FOUND, "pigeon", dtrain_context_create(DTRAIN_API_VERSION, bag, &fresh));
    OK(dtrain_options_set(bag, "transports", ","));
    FAILS(DTRAIN_ERR_CONFIG, "transports", dtrain_context_create(DTRAIN_API_VERSION, bag, &fresh));
    OK(dtrain_options_set(bag, "transports", "shm"));
    OK(dtrain_options_set(bag, "secret.file", "/no/such/file"));
    FAILS(DTRAIN_ERR_NOT_FOUND, "secret", dtrain_context_create(DTRAIN_API_VERSION, bag, &fresh));
    dtrain_options_destroy(bag);
    assert_null(fresh);
    OK(dtrain_context_destroy(NULL));
    INVALID("context", dtrain_context_progress(NULL));
    INVALID("context", dtrain_context_set_log(NULL, NULL, NULL));
}

static void communicators(void **state) {
    (void)state;
    dtrain_context_t *free_context = NULL;
    dtrain_comm_t *fresh = NULL;
    dtrain_comm_params_t params;
    OK(dtrain_context_create(DTRAIN_API_VERSION, NULL, &free_context));
    INVALID("context", dtrain_comm_create(NULL, "env", NULL, &fresh));
    INVALID("comm_p", dtrain_comm_create(free_context, "env", NULL, NULL));
    DTRAIN_INIT(&params);
    params.size = 2;
    params.rank = 2;
    INVALID("rank 2", dtrain_comm_create(free_context, "tcp://127.0.0.1:1", &params, &fresh));
    params.rank = -1;
    INVALID("rank -1", dtrain_comm_create(free_context, "tcp://127.0.0.1:1", &params, &fresh));
    params.rank = 0;
    params.size = -2;
    INVALID("-2", dtrain_comm_create(free_context, "tcp://127.0.0.1:1", &params, &fresh));
    params.size = 2000000000;
    INVALID("2000000000", dtrain_comm_create(free_context, "tcp://127.0.0.1:1", &params, &fresh));
    params.size = 2;
    INVALID("pigeon", dtrain_comm_create(free_context, "pigeon://roof", &params, &fresh));
    INVALID("oob", dtrain_comm_create(free_context, "oob", &params, &fresh));
    params.struct_size = 0;
    INVALID("struct_size", dtrain_comm_create(free_context, "oob", &params, &fresh));
    assert_null(fresh);
    OK(dtrain_context_destroy(free_context)); /* nothing was left */
    INVALID("comm", dtrain_comm_split(NULL, 0, 0, &fresh));
    INVALID("new_p", dtrain_comm_split(comm, 0, 0, NULL));
    INVALID("comm", dtrain_comm_duplicate(NULL, &fresh));
    INVALID("comm", dtrain_comm_shrink(NULL, &fresh));
    INVALID("comm", dtrain_comm_abort(NULL, "why"));
    INVALID("comm", dtrain_comm_status(NULL));
    INVALID("comm", dtrain_comm_failed(NULL, NULL, 0));
    INVALID("ranks is NULL", dtrain_comm_failed(comm, NULL, 1));
    assert_int_equal(dtrain_comm_failed(comm, NULL, 0), 0);
    assert_int_equal(dtrain_comm_rank(NULL), -1);
    assert_int_equal(dtrain_comm_size(NULL), -1);
    OK(dtrain_comm_destroy(NULL));
    OK(dtrain_comm_split(comm, -1, 0, &fresh)); /* not an error: none for this rank */
    assert_null(fresh);
}

static void collectives(void **state) {
    (void)state;
    uint64_t four = 4, huge = UINT64_MAX / 2;
    INVALID("comm", dtrain_barrier(NULL, NULL, NULL));
    INVALID("dtype 99", dtrain_allreduce(comm, data, data, 4, 99, DTRAIN_SUM, NULL, NULL));
    INVALID("dtype 0", dtrain_allreduce(comm, data, data, 0, 0, DTRAIN_SUM, NULL, NULL));
    INVALID("op 44", dtrain_allreduce(comm, data, data, 4, DTRAIN_F32, 44, NULL, NULL));
    INVALID("integers", dtrain_allreduce(comm, data, data, 4, DTRAIN_F32, DTRAIN_BXOR, NULL, NULL));
    INVALID("send", dtrain_allreduce(comm, NULL, data, 4, DTRAIN_F32, DTRAIN_SUM, NULL, NULL));
    INVALID("receive", dtrain_allreduce(comm, data, NULL, 4, DTRAIN_F32, DTRAIN_SUM, NULL, NULL));
    INVALID("overlap",
            dtrain_allreduce(comm, data, data + 1, 2, DTRAIN_F32, DTRAIN_SUM, NULL, NULL));
    FAILS(DTRAIN_ERR_LIMIT, "allreduce",
          dtrain_allreduce(comm, data, other, huge, DTRAIN_F32, DTRAIN_SUM, NULL, NULL));
    FAILS(DTRAIN_ERR_LIMIT, "allgather",
          dtrain_allgather(comm, data, other, huge, DTRAIN_F64, NULL, NULL));
    INVALID("counts",
            dtrain_reduce_scatterv(comm, data, other, NULL, DTRAIN_F32, DTRAIN_SUM, NULL, NULL));
    FAILS(DTRAIN_ERR_LIMIT, "allgather",
          dtrain_allgatherv(comm, data, other, &four, &huge, DTRAIN_F64, NULL, NULL));
    INVALID("counts",
            dtrain_alltoallv(comm, data, &four, NULL, other, NULL, NULL, DTRAIN_F32, NULL, NULL));
    FAILS(DTRAIN_ERR_LIMIT, "alltoall",
          dtrain_alltoallv(comm, data, &huge, NULL, other, &huge, NULL, DTRAIN_F32, NULL, NULL));
    INVALID("root 1", dtrain_broadcast(comm, data, 4, DTRAIN_F32, 1, NULL, NULL));
    INVALID("root -1", dtrain_reduce(comm, data, data, 4, DTRAIN_F32, DTRAIN_SUM, -1, NULL, NULL));
    INVALID("rank 1", dtrain_send(comm, data, 4, DTRAIN_F32, 1, 0, NULL, NULL));
    INVALID("rank -1", dtrain_send(comm, data, 4, DTRAIN_F32, DTRAIN_ANY_RANK, 0, NULL, NULL));
    INVALID("rank -2", dtrain_recv(comm, data, 4, DTRAIN_F32, -2, 0, NULL, NULL));
    INVALID("NULL", dtrain_recv(comm, NULL, 4, DTRAIN_F32, 0, 0, NULL, NULL));
    INVALID("dtype", dtrain_recv(comm, data, 4, 77, 0, 0, NULL, NULL));
    INVALID("elements", dtrain_recv(comm, data, huge, DTRAIN_F64, 0, 0, NULL, NULL));
    /* Zero elements are no error, whatever the buffers. */
    OK(dtrain_allreduce(comm, NULL, NULL, 0, DTRAIN_F32, DTRAIN_SUM, NULL, NULL));
    OK(dtrain_broadcast(comm, NULL, 0, DTRAIN_F32, 0, NULL, NULL));
    OK(dtrain_alltoall(comm, NULL, NULL, 0, DTRAIN_F32, NULL, NULL));
    OK(dtrain_comm_status(comm)); /* none of it counts as a call */
}

static void operation_params(void **state) {
    (void)state;
    struct {
        dtrain_op_params_t known;
        uint64_t unknown;
    } longer;
    dtrain_request_t *request = NULL;
    dtrain_op_params_t *params = &longer.known;
    dtrain_context_t *second = NULL;
    dtrain_cq_t *queue = NULL;
    dtrain_event_t event;
    memset(&longer, 0, sizeof longer);
    INVALID("struct_size", dtrain_barrier(comm, params, &request));
    longer.known.struct_size = sizeof longer;
    OK(dtrain_barrier(comm, params, NULL));
    longer.unknown = 1;
    FAILS(DTRAIN_ERR_UNSUPPORTED, "newer", dtrain_barrier(comm, params, &request));
    DTRAIN_INIT(params);
    params->struct_size = 8; /* an older program's */
    OK(dtrain_barrier(comm, params, NULL));
    DTRAIN_INIT(params);
    params->flags = 8;
    FAILS(DTRAIN_ERR_UNSUPPORTED, "flags 0x8", dtrain_barrier(comm, params, &request));
    params->flags = DTRAIN_OP_AWAITED;
    FAILS(DTRAIN_ERR_INVALID, "needs a request to wait for", dtrain_barrier(comm, params, NULL));
    DTRAIN_INIT(params);
    params->stream_type = DTRAIN_STREAM_CUDA;
    FAILS(DTRAIN_ERR_UNSUPPORTED, "stream", dtrain_barrier(comm, params, &request));
    DTRAIN_INIT(params);
    OK(dtrain_context_create(DTRAIN_API_VERSION, NULL, &second));
    OK(dtrain_cq_create(second, 1, &queue));
    params->cq = queue;
    INVALID("another context", dtrain_barrier(comm, params, &request));
    assert_null(request);
    INVALID("context", dtrain_cq_create(NULL, 1, &queue));
    INVALID("cq_p", dtrain_cq_create(second, 1, NULL));
    FAILS(DTRAIN_ERR_LIMIT, "events", dtrain_cq_create(second, UINT32_MAX, &queue));
    INVALID("cq", dtrain_cq_poll(NULL, &event, 1, 0));
    INVALID("events", dtrain_cq_poll(queue, NULL, 1, 0));
    INVALID("cq", dtrain_cq_fd(NULL));
    INVALID("request", dtrain_request_test(NULL));
    INVALID("request", dtrain_request_wait(NULL, 0));
    INVALID("request", dtrain_request_cancel(NULL));
    INVALID("request", dtrain_request_result(NULL, &event));
    assert_int_equal(dtrain_request_error(NULL, NULL, 0), 0);
    OK(dtrain_cq_destroy(queue));
    OK(dtrain_context_destroy(second));
}

static void tables_and_memory(void **state) {
    (void)state;
    dtrain_table_t *table = NULL;
    dtrain_server_t *server = NULL;
    dtrain_mem_t *mem = NULL;
    dtrain_table_params_t params;
    dtrain_mem_params_t range;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.length = 4;
    INVALID("comm", dtrain_table_create(NULL, "w", &params, &table));
    INVALID("name", dtrain_table_create(comm, NULL, &params, &table));
    INVALID("name", dtrain_table_create(comm, "", &params, &table));
    INVALID("table_p", dtrain_table_create(comm, "w", &params, NULL));
    INVALID("", dtrain_table_create(comm, "w", NULL, &table));
    params.rule = 99;
    INVALID("rule", dtrain_table_create(comm, "w", &params, &table));
    params.rule = DTRAIN_RULE_ADAM;
    params.dtype = DTRAIN_I32;
    INVALID("float", dtrain_table_create(comm, "w", &params, &table));
    params.rule = 0;
    params.length = UINT64_MAX;
    assert_true(dtrain_table_create(comm, "w", &params, &table) < 0);
    assert_null(table);
    INVALID("table", dtrain_table_push(NULL, 0, 1, data, NULL, NULL));
    INVALID("table", dtrain_table_clock(NULL, NULL, NULL));
    OK(dtrain_table_destroy(NULL));
    INVALID("server_p", dtrain_server_create(context, "env", NULL, NULL));
    INVALID("server", dtrain_server_wait(NULL, 0));
    OK(dtrain_server_destroy(server));
    DTRAIN_INIT(&range);
    range.address = data;
    INVALID("length", dtrain_mem_register(context, &range, &mem));
    range.length = sizeof data;
    range.address = NULL;
    INVALID("address", dtrain_mem_register(context, &range, &mem));
    range.address = data;
    range.mem_type = 9;
    INVALID("9", dtrain_mem_register(context, &range, &mem));
    INVALID("context", dtrain_mem_register(NULL, &range, &mem));
    assert_null(mem);
}

static void texts(void **state) {
    (void)state;
    char text[8];
    INVALID("comm", dtrain_comm_status(NULL));
    assert_int_equal(dtrain_last_error(text, sizeof text), strlen("comm is NULL"));
    assert_string_equal(text, "comm is");
    assert_int_equal(dtrain_last_error(NULL, 0), strlen("comm is NULL"));
    assert_string_equal(dtrain_status_name(DTRAIN_ERR_PEER), "DTRAIN_ERR_PEER");
    assert_string_equal(dtrain_status_name(-7777), "DTRAIN_ERR_UNKNOWN");
    assert_non_null(dtrain_status_text(-7777));
    assert_int_equal(dtrain_dtype_size(DTRAIN_BF16), 2);
    assert_int_equal(dtrain_dtype_size(0), 0);
    assert_int_equal(dtrain_dtype_size(13), 0);
}

/* The child may only destroy; the parent goes on. */
static void forked_child(void **state) {
    (void)state;
    dtrain_comm_t *fresh = NULL;
    dtrain_context_t *own = NULL;
    dtrain_request_t *receive = NULL, *prepared = NULL;
    dtrain_op_params_t params;
    int status = -1;
    DTRAIN_INIT(&params);
    params.flags = DTRAIN_OP_PERSISTENT;
    OK(dtrain_recv(comm, data, 1, DTRAIN_F32, 0, 77, NULL, &receive));
    OK(dtrain_barrier(comm, &params, &prepared));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20);
        int good = dtrain_barrier(comm, NULL, NULL) == DTRAIN_ERR_STATE &&
                   dtrain_request_test(receive) == DTRAIN_ERR_STATE &&
                   dtrain_request_wait(receive, -1) == DTRAIN_ERR_STATE &&
                   dtrain_request_cancel(receive) == DTRAIN_ERR_STATE &&
                   dtrain_request_start(&prepared, 1) == DTRAIN_ERR_STATE &&
                   dtrain_comm_split(comm, 0, 0, &fresh) == DTRAIN_ERR_STATE &&
                   dtrain_comm_status(comm) == DTRAIN_ERR_STATE &&
                   dtrain_context_progress(context) == DTRAIN_ERR_STATE &&
                   dtrain_comm_destroy(comm) == DTRAIN_OK &&
                   dtrain_context_destroy(context) == DTRAIN_OK &&
                   dtrain_context_create(DTRAIN_API_VERSION, NULL, &own) == DTRAIN_OK &&
                   dtrain_comm_create(own, "env", NULL, &fresh) == DTRAIN_OK &&
                   dtrain_barrier(fresh, NULL, NULL) == DTRAIN_OK &&
                   dtrain_comm_destroy(fresh) == DTRAIN_OK &&
                   dtrain_context_destroy(own) == DTRAIN_OK;
        _exit(good ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    OK(dtrain_barrier(comm, NULL, NULL));
    dtrain_request_free(prepared);
    OK(dtrain_request_cancel(receive));
    assert_int_equal(dtrain_request_wait(receive, -1), DTRAIN_ERR_CANCELED);
    dtrain_request_free(receive);
}

/* No signal handler is installed and nothing is printed to stdout. */
static void quiet(void **state) {
    (void)state;
    int ends[2], status = -1;
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dtrain_context_t *own = NULL;
        dtrain_comm_t *fresh = NULL;
        int good = dup2(ends[1], 1) == 1;
        struct sigaction before[32]; /* cmocka's own */
        for (int number = 1; number < 32; number++) sigaction(number, NULL, &before[number]);
        close(ends[0]);
        good =
            good && dtrain_context_create(DTRAIN_API_VERSION, NULL, &own) == DTRAIN_OK &&
            dtrain_comm_create(own, "env", NULL, &fresh) == DTRAIN_OK &&
            dtrain_allreduce(fresh, data, data, 4, DTRAIN_F32, DTRAIN_SUM, NULL, NULL) == DTRAIN_OK;
        for (int number = 1; number < 32; number++) {
            struct sigaction after;
            if (sigaction(number, NULL, &after) != 0) continue;
            good = good && after.sa_handler == before[number].sa_handler;
        }
        dtrain_comm_destroy(fresh);
        dtrain_context_destroy(own);
        fflush(stdout);
        _exit(good ? 0 : 1);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 0);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options),
        cmocka_unit_test(contexts),
        cmocka_unit_test(communicators),
        cmocka_unit_test(collectives),
        cmocka_unit_test(operation_params),
        cmocka_unit_test(tables_and_memory),
        cmocka_unit_test(texts),
        cmocka_unit_test(forked_child),
        cmocka_unit_test(quiet),
    };
    return cmocka_run_group_tests_name("bad input", tests, make_comm, end_comm);
}
