/* The smallest job: joins, makes its communicator, adds up a number with the others, and ends.
 *
 * usage: time dtrain-run -n N -- bench_start
 *
 * With the argument "times" each rank prints when it began and when all had met, in ns; with
 * "memory" how much memory it has then, with its part of shared pages, and how many threads.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <inttypes.h>

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The number behind the first such word of a file of /proc/self. */
static long read_number(const char *path, const char *word) {
    char line[256];
    long number = -1;
    FILE *file = fopen(path, "r");
    while (file != NULL && number < 0 && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, word, strlen(word)) == 0) number = atol(line + strlen(word));
    if (file != NULL) fclose(file);
    return number;
}

int main(int argc, char **argv) {
    const char *tells = argc > 1 ? argv[1] : "";
    const int64_t begun = now_ns();
    dtrain_context_t *context = NULL;
    dtrain_comm_t *comm = NULL;
    MUST(dtrain_context_create(DTRAIN_API_VERSION, NULL, &context));
    MUST(dtrain_comm_create(context, NULL, NULL, &comm));
    double own = dtrain_comm_rank(comm), sum = 0;
    MUST(dtrain_allreduce(comm, &own, &sum, 1, DTRAIN_F64, DTRAIN_SUM, NULL, NULL));
    if (strcmp(tells, "times") == 0) printf("began %" PRId64 " met %" PRId64 "\n", begun, now_ns());
    if (strcmp(tells, "memory") == 0) {
        printf("memory %ld KiB, threads %ld\n", read_number("/proc/self/smaps_rollup", "Pss:"),
               read_number("/proc/self/status", "Threads:"));
        MUST(dtrain_barrier(comm, NULL, NULL)); /* pages are shared by those who are there */
    }
    MUST(dtrain_comm_destroy(comm));
    MUST(dtrain_context_destroy(context));
    return 0;
}
