/* What a program of 0.1 relies on: built with that header and a stub, run on today's library.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtrain.h"

#include <stdio.h>

#define SAY_AND_FAIL(what)                                                                         \
    do {                                                                                           \
        char text_[512];                                                                           \
        dtrain_last_error(text_, sizeof text_);                                                    \
        fprintf(stderr, "line %d: %s: %s\n", __LINE__, what, text_);                               \
        return 1;                                                                                  \
    } while (0)
#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != DTRAIN_OK) SAY_AND_FAIL(#call);                                              \
    } while (0)
#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) SAY_AND_FAIL(#condition);                                                \
    } while (0)

static int collectives(dtrain_context_t *context, dtrain_comm_t *comm) {
    float in[3] = {1, 2, 3}, out[3] = {0, 0, 0};
    OK(dtrain_allreduce(comm, in, out, 3, DTRAIN_F32, DTRAIN_SUM, NULL, NULL));
    REQUIRE(memcmp(in, out, sizeof in) == 0);

    dtrain_cq_t *cq;
    dtrain_op_params_t params;
    dtrain_event_t event;
    OK(dtrain_cq_create(context, 0, &cq));
    DTRAIN_INIT(&params);
    params.cq = cq;
    params.user_tag = 42;
    OK(dtrain_broadcast(comm, in, 3, DTRAIN_F32, 0, &params, NULL));
    REQUIRE(dtrain_cq_poll(cq, &event, 1, INT64_C(10000000000)) == 1);
    REQUIRE(event.user_tag == 42 && event.status == DTRAIN_OK && event.request == NULL);
    OK(dtrain_cq_destroy(cq));

    dtrain_request_t *request;
    OK(dtrain_barrier(comm, NULL, &request));
    OK(dtrain_request_wait(request, -1));
    OK(dtrain_request_result(request, &event));
    dtrain_request_free(request);
    return 0;
}

static int table(dtrain_comm_t *comm) {
    dtrain_table_params_t params;
    dtrain_table_t *table;
    double push[2] = {1, 2}, pulled[2] = {0, 0};
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F64;
    params.length = 2;
    params.rule = DTRAIN_RULE_SGD;
    params.learning_rate = 0.5;
    params.initial = 4;
    OK(dtrain_table_create(comm, "weights", &params, &table));
    OK(dtrain_table_push(table, 0, 2, push, NULL, NULL));
    OK(dtrain_table_pull(table, 0, 2, pulled, NULL, NULL));
    REQUIRE(pulled[0] == 3.5 && pulled[1] == 3.0);
    OK(dtrain_table_destroy(table));
    return 0;
}

static int files(void) {
    const char *path = "old_program.tfrecord";
    dtrain_writer_t *writer;
    OK(dtrain_writer_open(path, &writer));
    OK(dtrain_writer_append(writer, "abc", 3));
    OK(dtrain_writer_close(writer));
    dtrain_reader_params_t params;
    dtrain_reader_t *reader;
    const void *data;
    uint64_t length;
    DTRAIN_INIT(&params);
    OK(dtrain_reader_open(&path, 1, &params, &reader));
    OK(dtrain_reader_next(reader, &data, &length));
    REQUIRE(length == 3 && memcmp(data, "abc", 3) == 0);
    REQUIRE(dtrain_reader_next(reader, &data, &length) == DTRAIN_ERR_NOT_FOUND);
    dtrain_reader_close(reader);
    return remove(path);
}

int main(void) {
    dtrain_options_t *options;
    dtrain_context_t *context;
    dtrain_comm_params_t params;
    dtrain_comm_t *comm;
    REQUIRE(dtrain_version() >= DTRAIN_API_VERSION);
    REQUIRE(strcmp(dtrain_status_name(-40), "DTRAIN_ERR_PEER") == 0);
    OK(dtrain_options_create(&options));
    OK(dtrain_options_set(options, "log.level", "error"));
    OK(dtrain_context_create(DTRAIN_API_VERSION, options, &context));
    dtrain_options_destroy(options);
    DTRAIN_INIT(&params);
    params.size = 1;
    OK(dtrain_comm_create(context, "env", &params, &comm));
    REQUIRE(dtrain_comm_rank(comm) == 0 && dtrain_comm_size(comm) == 1);
    if (collectives(context, comm) != 0 || table(comm) != 0 || files() != 0) return 1;
    OK(dtrain_comm_destroy(comm));
    OK(dtrain_context_destroy(context));
    return 0;
}
