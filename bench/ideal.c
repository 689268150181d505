/* The all-reduce of more ranks than cores without ranks: one thread per core adds up the vectors of
 * all and stores the sum into all; and every rank has to get a core twice, to come and to go.
 * usage: bench_ideal allreduce shm BYTES...; BENCH_RANKS: how many; prints records as the harness.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_CORES = 64, SAMPLES = 25 };
static const double yield_seconds = 0.1;

static int ranks, cores;
static float **vectors;
static size_t count;
static pthread_barrier_t turn;
static double samples[SAMPLES];

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Elements `begin` to `end` of all vectors. A block stays in the cache until it is stored. */
static void sum_part(size_t begin, size_t end) {
    enum { BLOCK = 4096 };
    float sum[BLOCK];
    for (size_t at = begin; at < end; at += BLOCK) {
        const size_t n = end - at < BLOCK ? end - at : BLOCK;
        for (size_t i = 0; i < n; i++) sum[i] = vectors[0][at + i];
        for (int r = 1; r < ranks; r++)
            for (size_t i = 0; i < n; i++) sum[i] += vectors[r][at + i];
        for (int r = 0; r < ranks; r++)
            for (size_t i = 0; i < n; i++) vectors[r][at + i] = sum[i];
    }
}

static void *work(void *argument) {
    const size_t core = (size_t)(uintptr_t)argument, parts = (size_t)cores;
    for (int i = 0; i < SAMPLES; i++) {
        for (size_t r = core; r < (size_t)ranks; r += parts)
            for (size_t e = 0; e < count; e++) vectors[r][e] = (float)(i % 3);
        pthread_barrier_wait(&turn);
        const double begin = now();
        sum_part(count * core / parts, count * (core + 1) / parts);
        pthread_barrier_wait(&turn);
        if (core == 0) samples[i] = now() - begin;
    }
    return NULL;
}

/* Median seconds of the arithmetic. */
static double arithmetic(size_t bytes) {
    pthread_t threads[MOST_CORES];
    count = bytes / sizeof(float);
    for (int r = 0; r < ranks; r++) {
        vectors[r] =
            (float *)mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (vectors[r] == MAP_FAILED) exit(EXIT_FAILURE);
        madvise(vectors[r], bytes, MADV_HUGEPAGE);
    }
    for (int t = 1; t < cores; t++)
        if (pthread_create(&threads[t], NULL, work, (void *)(uintptr_t)t) != 0) exit(EXIT_FAILURE);
    work(NULL);
    for (int t = 1; t < cores; t++) pthread_join(threads[t], NULL);
    for (int r = 0; r < ranks; r++) munmap(vectors[r], bytes);
    qsort(samples, SAMPLES, sizeof *samples, ascending);
    return samples[SAMPLES / 2];
}

/* Seconds until all ranks have had a core once: they do nothing but yield. */
static double turn_of_all(void) {
    atomic_long *yields = (atomic_long *)mmap(NULL, sizeof *yields, PROT_READ | PROT_WRITE,
                                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (yields == MAP_FAILED) exit(EXIT_FAILURE);
    const double begin = now();
    for (int r = 0; r < ranks; r++) {
        const pid_t child = fork();
        if (child < 0) exit(EXIT_FAILURE);
        if (child > 0) continue;
        long own = 0;
        for (; now() < begin + yield_seconds; own++) sched_yield();
        atomic_fetch_add(yields, own);
        _exit(EXIT_SUCCESS);
    }
    while (wait(NULL) > 0) {
    }
    return yield_seconds * ranks / (double)atomic_load(yields);
}

int main(int argc, char **argv) {
    const char *wanted = getenv("BENCH_RANKS");
    ranks = wanted != NULL ? atoi(wanted) : 0;
    cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (cores > MOST_CORES) cores = MOST_CORES;
    if (argc < 4 || ranks < 2)
        return fprintf(stderr, "usage: BENCH_RANKS=N bench_ideal allreduce shm BYTES...\n"),
               EXIT_FAILURE;
    vectors = (float **)calloc((size_t)ranks, sizeof *vectors);
    if (vectors == NULL || pthread_barrier_init(&turn, NULL, (unsigned)cores) != 0)
        return EXIT_FAILURE;
    const double turns = 2 * turn_of_all();
    for (int i = 3; i < argc; i++) {
        const size_t bytes = (size_t)strtoull(argv[i], NULL, 10);
        const double us = 1e6 * (turns + (bytes >= 4096 ? arithmetic(bytes) : 0));
        printf("{\"contender\": \"ideal\", \"kind\": \"%s\", \"transport\": \"%s\", \"ranks\": %d, "
               "\"bytes\": %zu, \"median_us\": %.3f, \"min_us\": %.3f, \"foreign\": 0, "
               "\"peak_kib\": 0}\n",
               argv[1], argv[2], ranks, bytes, us, us);
    }
    free(vectors);
    return EXIT_SUCCESS;
}
