/* Small all-reduces, messages or requests to tables of two ranks, for test_instructions.py to
 * count. usage: small_calls CALLS same|varied|messages|pushes|pulls: two ranks of this thread, in
 * turn; all-reduces of the same or another buffer each time, 1 KiB, or one value at the other rank
 *        small_calls CALLS apart: one rank of two processes, all-reduces
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtrain.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { buffers = 64, most_bytes = 4096 };
static float data[2][buffers][2];
static char message[2][1024];

typedef struct member {
    int rank;
    const char *progress; /* option */
    int has_table;
    dtrain_context_t *context;
    dtrain_comm_t *comm;
    dtrain_table_t *table;
} member_t;

static void need(dtrain_status_t status) {
    char text[512];
    if (status == DTRAIN_OK) return;
    dtrain_last_error(text, sizeof text);
    fprintf(stderr, "%s\n", text);
    exit(EXIT_FAILURE);
}

static void make_context(member_t *member) {
    dtrain_options_t *options = NULL;
    need(dtrain_options_create(&options));
    if (member->progress) need(dtrain_options_set(options, "progress", member->progress));
    need(dtrain_context_create(DTRAIN_API_VERSION, options, &member->context));
    dtrain_options_destroy(options);
}

static void *leave(void *self) {
    member_t *member = self;
    if (member->table != NULL) dtrain_table_destroy(member->table);
    dtrain_comm_destroy(member->comm);
    dtrain_context_destroy(member->context);
    return NULL;
}

/* ---- two ranks of one process ---- */

static pthread_barrier_t both;

static int32_t allgather(void *self, const void *send, void *recv, size_t len) {
    static char all[2][most_bytes];
    if (len > most_bytes) return 1;
    memcpy(all[((member_t *)self)->rank], send, len);
    pthread_barrier_wait(&both);
    for (size_t rank = 0; rank < 2; rank++) memcpy((char *)recv + rank * len, all[rank], len);
    pthread_barrier_wait(&both);
    return 0;
}

static void *join(void *self) {
    member_t *member = self;
    dtrain_comm_params_t params;
    DTRAIN_INIT(&params);
    params.size = 2;
    params.rank = member->rank;
    params.oob = allgather;
    params.oob_arg = member;
    make_context(member);
    need(dtrain_comm_create(member->context, "oob", &params, &member->comm));
    if (!member->has_table) return NULL; /* whoever serves one cannot take the shortest ways */
    dtrain_table_params_t table;
    DTRAIN_INIT(&table);
    table.dtype = DTRAIN_F32;
    table.length = 1 << 20;
    table.rule = DTRAIN_RULE_ADD;
    need(dtrain_table_create(member->comm, "values", &table, &member->table));
    return NULL;
}

/* ---- what is counted ---- */

#define COUNTED __attribute__((noinline)) dtrain_status_t

COUNTED counted_allreduce(dtrain_comm_t *comm, float *buffer) {
    return dtrain_allreduce(comm, buffer, buffer, 2, DTRAIN_F32, DTRAIN_MAX, NULL, NULL);
}

COUNTED counted_send(dtrain_comm_t *comm) {
    return dtrain_send(comm, message[0], sizeof message[0], DTRAIN_U8, 1, 0, NULL, NULL);
}

/* A request's two halves; the server answers between them. */
COUNTED counted_push(const member_t *self, uint64_t key, dtrain_request_t **request) {
    if (*request == NULL) return dtrain_table_push(self->table, key, 1, data[0][0], NULL, request);
    return dtrain_request_wait(*request, -1);
}

COUNTED counted_pull(const member_t *self, uint64_t key, dtrain_request_t **request) {
    if (*request == NULL) return dtrain_table_pull(self->table, key, 1, data[0][0], NULL, request);
    return dtrain_request_wait(*request, -1);
}

/* ---- two ranks of one thread: the other's part is there first, so nobody waits ---- */

static void finish(dtrain_request_t *request) {
    need(dtrain_request_wait(request, -1));
    dtrain_request_free(request);
}

static void sum_in_turn(const member_t *counted, const member_t *other, float *own, float *its) {
    dtrain_request_t *request = NULL;
    need(dtrain_allreduce(other->comm, its, its, 2, DTRAIN_F32, DTRAIN_MAX, NULL, &request));
    dtrain_context_progress(other->context);
    need(counted_allreduce(counted->comm, own));
    finish(request);
}

static void send_in_turn(const member_t *counted, const member_t *other) {
    dtrain_request_t *request = NULL;
    need(dtrain_recv(other->comm, message[1], sizeof message[1], DTRAIN_U8, 0, 0, NULL, &request));
    dtrain_context_progress(other->context);
    need(counted_send(counted->comm));
    finish(request);
}

static uint64_t key_at(const member_t *self, uint32_t wanted) {
    for (uint64_t key = 0;; key++) {
        uint32_t server;
        need(dtrain_table_locate(self->table, &key, 1, &server));
        if (server == wanted) return key;
    }
}

static void request_in_turn(const member_t *counted, const member_t *other, int pushes) {
    static uint64_t key = UINT64_MAX;
    if (key == UINT64_MAX) key = key_at(counted, 1);
    dtrain_request_t *request = NULL;
    need(pushes ? counted_push(counted, key, &request) : counted_pull(counted, key, &request));
    dtrain_context_progress(other->context);
    need(pushes ? counted_push(counted, key, &request) : counted_pull(counted, key, &request));
    dtrain_request_free(request);
}

static void run_in_turn(int calls, const char *what) {
    const int pushes = strcmp(what, "pushes") == 0, requests = pushes || strcmp(what, "pulls") == 0;
    member_t counted = {.rank = 0, .has_table = requests};
    if (requests) counted.progress = "manual"; /* else its thread might take a request in hand */
    member_t other = {.rank = 1, .progress = "manual", .has_table = requests};
    pthread_t thread;
    pthread_barrier_init(&both, NULL, 2);
    if (pthread_create(&thread, NULL, join, &other) != 0) exit(EXIT_FAILURE);
    join(&counted);
    pthread_join(thread, NULL);
    for (int i = 0; i < calls; i++) {
        const int n = strcmp(what, "varied") == 0 ? i % buffers : 0;
        if (strcmp(what, "messages") == 0)
            send_in_turn(&counted, &other);
        else if (requests)
            request_in_turn(&counted, &other, pushes);
        else
            sum_in_turn(&counted, &other, data[0][n], data[1][n]);
    }
    if (pthread_create(&thread, NULL, leave, &other) != 0) exit(EXIT_FAILURE);
    leave(&counted);
    pthread_join(thread, NULL);
}

/* ---- one rank of two processes ---- */

static void run_apart(int calls) {
    member_t own = {.rank = 0};
    make_context(&own);
    need(dtrain_comm_create(own.context, NULL, NULL, &own.comm));
    for (int i = 0; i < calls; i++) need(counted_allreduce(own.comm, data[0][0]));
    leave(&own);
}

int main(int argc, char **argv) {
    if (argc != 3) return EXIT_FAILURE;
    if (strcmp(argv[2], "apart") == 0)
        run_apart(atoi(argv[1]));
    else
        run_in_turn(atoi(argv[1]), argv[2]);
    return EXIT_SUCCESS;
}
