/* Whether memory grows with the number of requests.
 * usage: dtrain-run -n 1 -s 1 -- bench_endurance [REQUESTS [GROWTH [leak]]]
 * Makes so many small requests (10,000,000) to a dense and a sparse table, pushes and pulls, some
 * in flight and some that are waited for, and prints what is resident of both processes as it goes.
 * Fails if one has grown by more than GROWTH KiB since 10 % were done; with "leak" it loses 16
 * bytes at each request, to show that.
 * SPDX-License-Identifier: Apache-2.0 */
#include "program.h"
#include "resident.h"

enum { AT_ONCE = 64, KEYS = 1000, KINDS = 4 };

typedef struct job {
    dtrain_table_t *dense, *sparse;
    float values[AT_ONCE];
    uint64_t keys[AT_ONCE]; /* while they are in flight */
    dtrain_request_t *requests[AT_ONCE];
    int leaks;
    void *volatile lost;
} job_t;

/* Request n; waits for it if request_p is NULL. */
static void start(job_t *job, uint64_t n, dtrain_request_t **request_p) {
    const uint64_t slot = n % AT_ONCE, place = n / KINDS % KEYS;
    float *value = &job->values[slot];
    uint64_t *key = &job->keys[slot];
    *key = place * 0x9e3779b97f4a7c15u;
    switch (n % KINDS) {
    case 0: MUST(dtrain_table_push(job->dense, place, 1, value, NULL, request_p)); break;
    case 1: MUST(dtrain_table_pull(job->dense, place, 1, value, NULL, request_p)); break;
    case 2: MUST(dtrain_table_push_rows(job->sparse, key, 1, value, NULL, request_p)); break;
    default: MUST(dtrain_table_pull_rows(job->sparse, key, 1, value, NULL, request_p));
    }
}

static void finish(dtrain_request_t **request_p) {
    if (*request_p == NULL) return;
    MUST(dtrain_request_wait(*request_p, -1));
    dtrain_request_free(*request_p);
    *request_p = NULL;
}

/* Requests [first, end): every 16th is waited for at once. */
static void make(job_t *job, uint64_t first, uint64_t end) {
    for (uint64_t n = first; n < end; n++) {
        dtrain_request_t **request_p = &job->requests[n % AT_ONCE];
        finish(request_p);
        if (job->leaks) job->lost = calloc(1, 16);
        start(job, n, n % 16 == 0 ? NULL : request_p);
    }
    for (int i = 0; i < AT_ONCE; i++) finish(&job->requests[i]);
}

static void open_tables(job_t *job, dtrain_comm_t *comm) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.length = KEYS;
    params.rule = DTRAIN_RULE_ADAGRAD;
    MUST(dtrain_table_create(comm, "dense", &params, &job->dense));
    params.length = 0;
    params.dim = 1;
    MUST(dtrain_table_create(comm, "sparse", &params, &job->sparse));
}

int main(int argc, char **argv) {
    static const int percents[] = {10, 50, 100};
    const uint64_t requests = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;
    const long allowed = argc > 2 ? atol(argv[2]) : -1;
    static job_t job;
    job.leaks = argc > 3;
    dtrain_context_t *context = NULL;
    dtrain_comm_t *comm = NULL;
    MUST(dtrain_context_create(DTRAIN_API_VERSION, NULL, &context));
    MUST(dtrain_comm_create(context, NULL, NULL, &comm));
    open_tables(&job, comm);
    const pid_t server = server_pid();
    uint64_t done = 0;
    long worker_first = 0, server_first = 0, worker_last = 0, server_last = 0;
    for (int i = 0; i < 3; i++) {
        const uint64_t end = requests / 100 * (uint64_t)percents[i];
        make(&job, done, end);
        done = end;
        worker_last = resident_kib(getpid());
        server_last = resident_kib(server);
        if (i == 0) worker_first = worker_last;
        if (i == 0) server_first = server_last;
        printf("%10llu requests: worker %ld KiB, server %ld KiB\n", (unsigned long long)done,
               worker_last, server_last);
    }
    MUST(dtrain_table_destroy(job.dense));
    MUST(dtrain_table_destroy(job.sparse));
    MUST(dtrain_comm_destroy(comm));
    MUST(dtrain_context_destroy(context));
    const long grown_worker = worker_last - worker_first, grown_server = server_last - server_first;
    if (allowed < 0 || (grown_worker <= allowed && grown_server <= allowed)) return EXIT_SUCCESS;
    fprintf(stderr, "grown by %ld and %ld KiB, more than %ld\n", grown_worker, grown_server,
            allowed);
    return EXIT_FAILURE;
}
