/* The cost of a change of an elastic job's members: of forming the next generation with the same
 * workers, with one worker replaced by a newcomer, and with a table that follows.
 * usage: bench_reform [WORKERS [MIB]]
 * SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 15, NEWCOMER = -1, SERVER = -2 };

static char rendezvous[128];
static int workers = 8;
static uint64_t elements = 25 << 20; /* of the table; 100 MiB */

static dtrain_comm_t *join_job(int who, int servers, dtrain_context_t **context) {
    dtrain_options_t *options = NULL;
    dtrain_comm_params_t params;
    dtrain_comm_t *comm = NULL;
    DTRAIN_INIT(&params);
    params.size = who == NEWCOMER ? DTRAIN_NEWCOMER : workers;
    params.rank = who;
    params.servers = servers;
    MUST(dtrain_options_create(&options));
    MUST(dtrain_options_set(options, "elastic", "yes"));
    MUST(dtrain_context_create(DTRAIN_API_VERSION, options, context));
    MUST(dtrain_comm_create(*context, rendezvous, &params, &comm));
    dtrain_options_destroy(options);
    return comm;
}

static void serve(void) {
    dtrain_options_t *options = NULL;
    dtrain_context_t *context = NULL;
    dtrain_server_params_t params;
    dtrain_server_t *server = NULL;
    DTRAIN_INIT(&params);
    params.size = workers;
    params.servers = 1;
    MUST(dtrain_options_create(&options));
    MUST(dtrain_options_set(options, "elastic", "yes"));
    MUST(dtrain_context_create(DTRAIN_API_VERSION, options, &context));
    MUST(dtrain_server_create(context, rendezvous, &params, &server));
    MUST(dtrain_server_wait(server, -1));
    MUST(dtrain_server_destroy(server));
    MUST(dtrain_context_destroy(context));
    dtrain_options_destroy(options);
}

static dtrain_table_t *open_table(dtrain_comm_t *comm) {
    dtrain_table_params_t params;
    dtrain_table_t *table = NULL;
    DTRAIN_INIT(&params);
    params.length = elements;
    params.dtype = DTRAIN_F32;
    MUST(dtrain_table_create(comm, "weights", &params, &table));
    return table;
}

/* One worker, until it has left or all rounds are over. In each round the job has `workers` again:
 * `replace`: rank 1 leaves and a newcomer takes its place. */
static void work(int who, int replace, int with_table, int servers) {
    static double change_ms[ROUNDS], open_ms[ROUNDS];
    dtrain_context_t *context = NULL;
    dtrain_comm_t *comm = join_job(who, servers, &context);
    dtrain_table_t *table = with_table ? open_table(comm) : NULL;
    int32_t round = 0;
    for (;;) {
        dtrain_reform_params_t sizes;
        dtrain_comm_t *next = NULL;
        /* Newcomers begin where the others are. */
        MUST(dtrain_broadcast(comm, &round, 1, DTRAIN_I32, 0, NULL, NULL));
        if (round == ROUNDS) break;
        DTRAIN_INIT(&sizes);
        sizes.leaves = replace && dtrain_comm_rank(comm) == 1;
        sizes.min_size = sizes.max_size = workers;
        MUST(dtrain_barrier(comm, NULL, NULL));
        double begin = now_us();
        MUST(dtrain_comm_reform(comm, &sizes, &next));
        change_ms[round] = 1e-3 * (now_us() - begin);
        dtrain_table_t *before = table;
        begin = now_us();
        if (with_table && next != NULL) table = open_table(next);
        open_ms[round++] = 1e-3 * (now_us() - begin);
        if (before != NULL) MUST(dtrain_table_destroy(before));
        MUST(dtrain_comm_destroy(comm));
        comm = next;
        if (comm == NULL) break;
    }
    if (comm != NULL && dtrain_comm_rank(comm) == 0) {
        sort(change_ms, ROUNDS);
        sort(open_ms, ROUNDS);
        printf("%d workers%s%s: %.1f ms (%.1f to %.1f)", workers,
               servers > 0 ? " and a server" : "", replace ? ", one of them replaced" : "",
               change_ms[ROUNDS / 2], change_ms[0], change_ms[ROUNDS - 1]);
        if (with_table)
            printf(", and %.1f ms to open the table of %.0f MiB", open_ms[ROUNDS / 2],
                   (double)elements / (1 << 18));
        printf("\n");
    }
    if (table != NULL && comm != NULL) MUST(dtrain_table_destroy(table));
    MUST(dtrain_comm_destroy(comm));
    MUST(dtrain_context_destroy(context));
}

static void start(int who, int replace, int with_table, int servers) {
    fflush(stdout);
    const pid_t child = fork();
    if (child < 0) exit(EXIT_FAILURE);
    if (child > 0) return;
    if (who == SERVER)
        serve();
    else
        work(who, replace, with_table, servers);
    exit(EXIT_SUCCESS);
}

static int run(const char *folder, int replace, int with_table, int servers) {
    static int jobs = 0;
    int failed = 0, status = 0;
    snprintf(rendezvous, sizeof rendezvous, "file://%s/%d", folder, jobs++);
    if (servers > 0) start(SERVER, 0, 0, servers);
    for (int rank = 0; rank < workers; rank++) start(rank, replace, with_table, servers);
    for (int i = 0; replace && i < ROUNDS; i++) start(NEWCOMER, replace, with_table, servers);
    while (wait(&status) > 0) failed |= status != 0;
    remove(rendezvous + strlen("file://"));
    return failed;
}

/* What the table's values cost at least: to be copied, into memory that is new each time. */
static void copy(void) {
    static double ms[ROUNDS];
    const size_t bytes = elements * sizeof(float);
    char *from = malloc(bytes);
    if (from == NULL) exit(EXIT_FAILURE);
    memset(from, 1, bytes);
    for (int i = 0; i < ROUNDS; i++) {
        const double begin = now_us();
        char *to = malloc(bytes);
        if (to == NULL) exit(EXIT_FAILURE);
        memcpy(to, from, bytes);
        ms[i] = 1e-3 * (now_us() - begin) + (to[bytes - 1] == 0);
        free(to);
    }
    free(from);
    sort(ms, ROUNDS);
    printf("a copy of %.0f MiB: %.1f ms\n", (double)elements / (1 << 18), ms[ROUNDS / 2]);
}

int main(int argc, char **argv) {
    char folder[] = "/tmp/bench-reform-XXXXXX";
    int failed = 0;
    if (argc > 1) workers = atoi(argv[1]);
    if (argc > 2) elements = (uint64_t)atoi(argv[2]) << 18;
    if (workers < 2 || elements == 0) return fprintf(stderr, "bench_reform [WORKERS [MIB]]\n"), 1;
    if (mkdtemp(folder) == NULL) return perror("bench_reform"), 1;
    failed |= run(folder, 0, 0, 0);
    failed |= run(folder, 1, 0, 0);
    failed |= run(folder, 1, 0, 1);
    failed |= run(folder, 0, 1, 0);
    failed |= run(folder, 1, 1, 1);
    failed |= run(folder, 1, 1, 0); /* the worker hands its part over, and the table moves */
    copy();
    rmdir(folder);
    return failed;
}
