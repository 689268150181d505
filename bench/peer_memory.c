/* What a context takes of memory, and each peer that it is connected to.
 * usage: dtrain-run -n RANKS -- bench_peer_memory
 * Resident memory of rank 0 that is not a file's (RssAnon, RssShmem), by which it grew while the
 * context was made, while it joined, and while it exchanged messages of some sizes with everybody,
 * over the transports of the environment (DTRAIN_TRANSPORTS).
 * SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <string.h>

enum { LARGEST = 1 << 20, ROUNDS = 3 };

static long resident_kib(void) {
    char line[256];
    long kib, sum = 0;
    FILE *file = fopen("/proc/self/status", "re");
    if (file == NULL) {
        perror("/proc/self/status");
        exit(EXIT_FAILURE);
    }
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "RssAnon: %ld", &kib) == 1 || sscanf(line, "RssShmem: %ld", &kib) == 1)
            sum += kib;
    fclose(file);
    return sum;
}

/* With everybody, one after the other. */
static void exchange(dtrain_comm_t *comm, unsigned char *bytes, uint64_t size) {
    const int ranks = dtrain_comm_size(comm), rank = dtrain_comm_rank(comm);
    for (int round = 0; round < ROUNDS; round++)
        for (int step = 1; step < ranks; step++) {
            const int to = (rank + step) % ranks, from = (rank - step + ranks) % ranks;
            dtrain_request_t *request;
            MUST(dtrain_recv(comm, bytes + LARGEST, size, DTRAIN_U8, from, 0, NULL, &request));
            MUST(dtrain_send(comm, bytes, size, DTRAIN_U8, to, 0, NULL, NULL));
            MUST(dtrain_request_wait(request, -1));
            dtrain_request_free(request);
        }
    MUST(dtrain_barrier(comm, NULL, NULL));
}

/* Rank 0, and all the others' median. */
static void print_growth(dtrain_comm_t *comm, const char *what, long kib, int peers) {
    const int ranks = dtrain_comm_size(comm);
    double mine = (double)kib / peers, *all = calloc((size_t)ranks, sizeof *all);
    if (all == NULL) exit(EXIT_FAILURE);
    MUST(dtrain_allgather(comm, &mine, all, 1, DTRAIN_F64, NULL, NULL));
    sort(all + 1, (size_t)ranks - 1);
    if (dtrain_comm_rank(comm) == 0)
        printf("%-40s %10.1f %10.1f\n", what, all[0], all[1 + (ranks - 1) / 2]);
    free(all);
}

int main(void) {
    static const uint64_t sizes[] = {1, 4 << 10, 64 << 10, LARGEST};
    dtrain_context_t *context;
    dtrain_comm_t *comm;
    unsigned char *bytes = malloc(2 * LARGEST);
    if (bytes == NULL) return EXIT_FAILURE;
    memset(bytes, 1, 2 * LARGEST);
    const long start = resident_kib();
    MUST(dtrain_context_create(DTRAIN_API_VERSION, NULL, &context));
    const long made = resident_kib();
    MUST(dtrain_comm_create(context, NULL, NULL, &comm));
    const long joined = resident_kib();
    const int peers = dtrain_comm_size(comm) - 1;
    if (peers == 0) return fprintf(stderr, "this takes two ranks or more\n"), EXIT_FAILURE;
    if (dtrain_comm_rank(comm) == 0) printf("%-40s %10s %10s\n", "KiB", "rank 0", "others");
    print_growth(comm, "a context", made - start, 1);
    print_growth(comm, "per peer: joining", joined - made, peers);
    for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++) {
        char what[64];
        snprintf(what, sizeof what, "per peer: messages of %llu bytes, too",
                 (unsigned long long)sizes[i]);
        exchange(comm, bytes, sizes[i]);
        print_growth(comm, what, resident_kib() - made, peers);
    }
    MUST(dtrain_comm_destroy(comm));
    MUST(dtrain_context_destroy(context));
    free(bytes);
    return EXIT_SUCCESS;
}
