/* Runs ranks as threads, which find each other by an all-gather in memory, or as a process of a
 * job.
 * SPDX-License-Identifier: Apache-2.0 */
#include "threads.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct meeting { /* state of the threads' all-gather */
    pthread_barrier_t barrier;
    const void *sent[MAX_THREADS];
    int size;
} meeting_t;

typedef struct thread {
    pthread_t id;
    const options_t *options;
    int (*body)(const options_t *, dtrain_comm_t *);
    meeting_t *meeting;
    int rank, result;
} thread_t;

static int32_t allgather(void *arg, const void *send, void *recv, size_t length) {
    thread_t *thread = arg;
    meeting_t *meeting = thread->meeting;
    meeting->sent[thread->rank] = send;
    pthread_barrier_wait(&meeting->barrier);
    for (int i = 0; i < meeting->size; i++)
        memcpy((char *)recv + (size_t)i * length, meeting->sent[i], length);
    pthread_barrier_wait(&meeting->barrier); /* keeps each `send` valid until all have copied it */
    return 0;
}

static int failed(const char *what, dtrain_status_t status) {
    char text[512];
    dtrain_last_error(text, sizeof text);
    fprintf(stderr, "dtrain-bench: %s: %s (%s)\n", what, text, dtrain_status_name(status));
    return -1;
}

static int run_rank(const options_t *options, const char *rendezvous,
                    const dtrain_comm_params_t *params,
                    int (*body)(const options_t *, dtrain_comm_t *)) {
    dtrain_context_t *context;
    dtrain_comm_t *comm;
    dtrain_status_t status = dtrain_context_create(DTRAIN_API_VERSION, NULL, &context);
    if (status != DTRAIN_OK) {
        failed("cannot start", status);
        exit(EXIT_FAILURE); /* other threads would wait for this one */
    }
    status = dtrain_comm_create(context, rendezvous, params, &comm);
    int result = status == DTRAIN_OK ? 0 : failed("cannot join", status);
    if (result == 0) {
        result = body(options, comm);
        status = dtrain_comm_destroy(comm);
        if (status != DTRAIN_OK) result = failed("cannot leave", status);
    }
    dtrain_context_destroy(context);
    return result;
}

static void *run_thread(void *arg) {
    thread_t *thread = arg;
    dtrain_comm_params_t params;
    DTRAIN_INIT(&params);
    params.size = thread->meeting->size;
    params.rank = thread->rank;
    params.oob = allgather;
    params.oob_arg = thread;
    thread->result = run_rank(thread->options, "oob", &params, thread->body);
    return NULL;
}

int run_threads(const options_t *options, int (*body)(const options_t *, dtrain_comm_t *)) {
    meeting_t meeting = {.size = options->threads};
    thread_t threads[MAX_THREADS];
    int result = 0;
    pthread_barrier_init(&meeting.barrier, NULL, (unsigned)meeting.size);
    for (int i = 0; i < meeting.size; i++) {
        threads[i] = (thread_t){.options = options, .body = body, .meeting = &meeting, .rank = i};
        if (pthread_create(&threads[i].id, NULL, run_thread, &threads[i]) != 0) {
            fprintf(stderr, "dtrain-bench: cannot create thread %d\n", i);
            exit(EXIT_FAILURE); /* the other threads would wait for it */
        }
    }
    for (int i = 0; i < meeting.size; i++) {
        pthread_join(threads[i].id, NULL);
        if (threads[i].result != 0) result = -1;
    }
    pthread_barrier_destroy(&meeting.barrier);
    return result;
}

int run_process(const options_t *options, int (*body)(const options_t *, dtrain_comm_t *)) {
    return run_rank(options, NULL, NULL, body);
}
