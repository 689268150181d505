/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "line.h"
#include "system_calls.h"
#include "usage.h"

#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const double time_box = 0.25;       /* seconds per size */
static const double sample_least = 0.0005; /* seconds of a sample below barrier_from */
static const size_t barrier_from = 64 << 10;
static const size_t huge_page = (size_t)2 << 20;
enum { LEAST_SAMPLES = 7, MOST_SAMPLES = 1000, MOST_REPEATS = 1000, WARM_UP = 5 };

const char *const kind_names[KIND_COUNT] = {"allreduce", "reduce_scatter", "allgather", "broadcast",
                                            "reduce",    "alltoall",       "sendrecv",  "barrier"};

typedef struct run {
    const contender_t *contender;
    kind_t kind;
    const char *transport;
    float *send, *recv;
    size_t count;
    int operations; /* so far; changes what the buffer holds */
    lines_t *lines; /* of ranks 0 and 1; NULL: not every rank has a core of its own */
} run_t;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* BENCH_CPUS: "0,1,...", one for each rank's calling thread; not set: the scheduler's choice. */
static void pin(int rank) {
    const char *cpus = getenv("BENCH_CPUS");
    cpu_set_t one;
    for (int r = 0; r < rank && cpus != NULL; r++)
        cpus = (cpus = strchr(cpus, ',')) != NULL ? cpus + 1 : NULL;
    if (cpus == NULL) return;
    CPU_ZERO(&one);
    CPU_SET(strtoul(cpus, NULL, 10), &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) perror("bench: BENCH_CPUS");
}

static float *allocate(size_t bytes) {
    bytes = (bytes + huge_page - 1) / huge_page * huge_page;
    char *at = (char *)mmap(NULL, bytes + huge_page, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return NULL;
    at += (huge_page - (uintptr_t)at % huge_page) % huge_page;
    madvise(at, bytes, MADV_HUGEPAGE);
    for (size_t i = 0; i < bytes; i += 4096) at[i] = 0;
    return (float *)(void *)at;
}

/* What every rank contributes, in rank order: `count` values each. */
static void gather(const run_t *run, const float *own, float *all, size_t count) {
    const contender_t *c = run->contender;
    for (size_t i = 0; i < count * (size_t)c->size; i++) all[i] = 0;
    for (size_t i = 0; i < count; i++) all[(size_t)c->rank * count + i] = own[i];
    c->exchange(c->self, all, count * (size_t)c->size);
}

static float total(const run_t *run, float own) {
    run->contender->exchange(run->contender->self, &own, 1);
    return own;
}

static void operate(const run_t *run) {
    run->contender->run(run->contender->self, run->kind, run->send, run->recv, run->count);
}

static int has_blocks(kind_t kind) {
    return kind == ALLGATHER || kind == REDUCE_SCATTER || kind == ALLTOALL;
}
static size_t block(const run_t *run) { return run->count / (size_t)run->contender->size; }

/* What this rank contributes, and how many elements. */
static float *input(const run_t *run, size_t *count) {
    const int rank = run->contender->rank;
    *count = run->count;
    switch (run->kind) {
    case ALLREDUCE: return run->recv;
    case BROADCAST: *count = rank == 0 ? run->count : 0; return run->recv;
    case SENDRECV: *count = rank == 0 ? run->count : 0; return run->send;
    case ALLGATHER: *count = block(run); return run->send;
    case BARRIER: *count = 0; return run->send;
    default: return run->send;
    }
}

/* How many elements this rank gets in recv. */
static size_t outputs(const run_t *run) {
    const int rank = run->contender->rank;
    switch (run->kind) {
    case REDUCE_SCATTER: return block(run);
    case REDUCE: return rank == 0 ? run->count : 0;
    case SENDRECV: return rank < 2 ? run->count : 0;
    case BARRIER: return 0;
    default: return run->count;
    }
}

static size_t expected(const run_t *run, size_t i) {
    const size_t rank = (size_t)run->contender->rank, size = (size_t)run->contender->size;
    const size_t b = block(run);
    switch (run->kind) {
    case REDUCE_SCATTER: i += rank * b; break;
    case ALLGATHER: return i % b % 5 + i / b + 1;
    case ALLTOALL: return (rank * b + i % b) % 5 + i / b + 1;
    case BROADCAST:
    case SENDRECV: return i % 5 + 1;
    default: break;
    }
    return size * (i % 5) + size * (size + 1) / 2;
}

static void fill(run_t *run) {
    size_t count;
    float *at = input(run, &count);
    const float value = (float)(1 + (run->operations++ + run->contender->rank) % 3);
    for (size_t i = 0; i < count; i++) at[i] = value;
}

static void verify(run_t *run) {
    const contender_t *c = run->contender;
    size_t count;
    float *at = input(run, &count);
    for (size_t i = 0; i < count; i++) at[i] = (float)(i % 5 + (size_t)c->rank + 1);
    c->barrier(c->self);
    operate(run);
    count = outputs(run);
    for (size_t i = 0; i < count; i++) {
        if (run->recv[i] == (float)expected(run, i)) continue;
        fprintf(stderr, "%s: %s, rank %d, %zu bytes: element %zu is %g, not %zu\n", c->name,
                kind_names[run->kind], c->rank, run->count * sizeof(float), i, (double)run->recv[i],
                expected(run, i));
        exit(EXIT_FAILURE);
    }
}

static float ways(const run_t *run) { return run->kind == SENDRECV ? 2 : 1; }

/* Seconds of one operation; of several back to back, with the rewriting, for small ones. */
static float sample(run_t *run, int repeats) {
    const contender_t *c = run->contender;
    double begin;
    if (run->count * sizeof(float) >= barrier_from) {
        fill(run);
        c->barrier(c->self);
        begin = now();
        operate(run);
        return (float)(now() - begin) / ways(run);
    }
    c->barrier(c->self);
    begin = now();
    for (int i = 0; i < repeats; i++) {
        fill(run);
        operate(run);
    }
    return (float)((now() - begin) / repeats) / ways(run);
}

static int limited(double value, int least, int most) {
    return value < least ? least : value > most ? most : (int)value;
}

/* How many samples of how many operations fill the time box; rank 0 decides. */
static void plan(run_t *run, int *samples, int *repeats) {
    const int small = run->count * sizeof(float) < barrier_from, guess = small ? 4 : 1;
    float once = 1e9f;
    const double begin = now();
    for (int i = 0; i < WARM_UP; i++) {
        const float t = sample(run, guess);
        if (t < once) once = t;
    }
    const double usual = (now() - begin) / WARM_UP / guess; /* with rewriting and barrier */
    *repeats = small ? limited(sample_least / (double)once, 1, MOST_REPEATS) : 1;
    *samples = limited(time_box / (usual * *repeats), LEAST_SAMPLES, MOST_SAMPLES);
    *repeats = (int)total(run, run->contender->rank == 0 ? (float)*repeats : 0);
    *samples = (int)total(run, run->contender->rank == 0 ? (float)*samples : 0);
}

/* The slowest rank's seconds of each sample, sorted. */
static void measure(run_t *run, float *slowest, int samples, int repeats) {
    const size_t n = (size_t)samples, size = (size_t)run->contender->size;
    float *own = (float *)malloc(n * sizeof *own), *all = (float *)malloc(n * size * sizeof *all);
    if (own == NULL || all == NULL) exit(EXIT_FAILURE);
    for (size_t i = 0; i < n; i++) own[i] = sample(run, repeats);
    gather(run, own, all, n);
    for (size_t i = 0; i < n; i++) {
        slowest[i] = all[i];
        for (size_t r = 1; r < size; r++)
            if (all[r * n + i] > slowest[i]) slowest[i] = all[r * n + i];
    }
    qsort(slowest, n, sizeof *slowest, compare);
    free(own);
    free(all);
}

/* In a file of directory PEER_STORE, if that is set. */
static lines_t *map_lines(const contender_t *contender) {
    const char *store = getenv("PEER_STORE");
    char path[512];
    if (store == NULL || sysconf(_SC_NPROCESSORS_ONLN) < contender->size || contender->size < 2 ||
        contender->rank > 1)
        return NULL;
    snprintf(path, sizeof path, "%s/lines", store);
    const int file = open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof(lines_t)) != 0) return NULL;
    void *at = mmap(NULL, sizeof(lines_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return at == MAP_FAILED ? NULL : (lines_t *)at;
}

/* How far rank 1's core is from that of rank 0, which gets it in ns; 0: unknown. */
static double distance(const run_t *run) {
    return run->lines == NULL ? 0 : line_ns(run->lines, run->contender->rank == 0);
}

static void measure_size(run_t *run) {
    const contender_t *c = run->contender;
    static float slowest[MOST_SAMPLES];
    int samples, repeats;
    if (c->prepare != NULL) c->prepare(c->self, run->kind, run->send, run->recv, run->count);
    verify(run);
    plan(run, &samples, &repeats);
    const double distance_before = distance(run);
    const usage_t before = usage_now();
    const double begin = now();
    const long calls_before = system_calls_now();
    measure(run, slowest, samples, repeats);
    const long calls = system_calls_now() - calls_before;
    const double wall = now() - begin;
    const usage_t after = usage_now();
    const double distance_after = distance(run);
    const double ranks = total(run, (float)(after.own - before.own));
    const float calls_of_all = total(run, (float)calls);
    if (c->rank != 0) return;
    const double others = (after.machine - before.machine - ranks) / wall;
    printf("{\"contender\": \"%s\", \"kind\": \"%s\", \"transport\": \"%s\", \"ranks\": %d, "
           "\"bytes\": %zu, \"median_us\": %.3f, \"min_us\": %.3f, \"max_us\": %.3f, \"n\": %d, "
           "\"repeats\": %d, \"line_ns\": [%.0f, %.0f], "
           "\"cpu\": %.3f, \"foreign\": %.3f, \"peak_kib\": %ld, \"system_calls\": %.2f}\n",
           c->name, kind_names[run->kind], run->transport, c->size, run->count * sizeof(float),
           1e6 * (double)slowest[samples / 2], 1e6 * (double)slowest[0],
           1e6 * (double)slowest[samples - 1], samples, repeats, distance_before, distance_after,
           ranks / c->size / wall, others > 0 ? others : 0, after.peak_kib,
           calls_before < 0 ? -1 : (double)calls_of_all / c->size / samples / repeats);
    fflush(stdout);
}

/* Since BENCH_LAUNCHED, nanoseconds of CLOCK_MONOTONIC: launcher, joining, a first all-reduce. */
static void report_start(const run_t *run) {
    const contender_t *c = run->contender;
    const char *launched = getenv("BENCH_LAUNCHED");
    float one = 1;
    c->exchange(c->self, &one, 1);
    const double seconds = launched == NULL ? 0 : now() - 1e-9 * strtod(launched, NULL);
    if (c->rank != 0) return;
    printf("{\"contender\": \"%s\", \"version\": \"%s\", \"kind\": \"%s\", \"transport\": \"%s\", "
           "\"ranks\": %d, \"start_ms\": %.1f, \"peak_kib\": %ld}\n",
           c->name, c->version, kind_names[run->kind], run->transport, c->size, 1e3 * seconds,
           usage_now().peak_kib);
}

/* What the others use of a core while they wait for rank 0. */
static void report_wait(const run_t *run) {
    const contender_t *c = run->contender;
    const struct timespec second = {.tv_sec = 1};
    c->barrier(c->self);
    const double before = usage_now().own, begin = now();
    if (c->rank == 0) nanosleep(&second, NULL);
    c->barrier(c->self);
    const double share = (usage_now().own - before) / (now() - begin);
    const float others = total(run, c->rank == 0 ? 0 : (float)share) / (float)(c->size - 1);
    if (c->rank == 0)
        printf("{\"contender\": \"%s\", \"kind\": \"%s\", \"transport\": \"%s\", "
               "\"ranks\": %d, \"wait_share\": %.4f}\n",
               c->name, kind_names[run->kind], run->transport, c->size, (double)others);
}

static int parse_kind(const char *name, kind_t *kind) {
    for (int k = 0; k < KIND_COUNT; k++) {
        if (strcmp(name, kind_names[k]) != 0) continue;
        *kind = (kind_t)k;
        return 1;
    }
    return 0;
}

int harness_run(const contender_t *contender, int argc, char **argv) {
    run_t run = {.contender = contender};
    const size_t size = (size_t)contender->size;
    size_t most = 0;
    if (argc < 4 || !parse_kind(argv[1], &run.kind))
        return fprintf(stderr, "usage: PROGRAM KIND TRANSPORT BYTES...\n"), EXIT_FAILURE;
    run.transport = argv[2];
    report_start(&run);
    run.lines = map_lines(contender);
    pin(contender->rank);
    system_calls_begin();
    for (int i = 3; i < argc; i++) {
        const size_t bytes = (size_t)strtoull(argv[i], NULL, 10);
        if (bytes > most) most = bytes;
    }
    run.recv = allocate(most);
    run.send = run.kind == ALLREDUCE || run.kind == BROADCAST ? run.recv : allocate(most);
    if (run.recv == NULL || run.send == NULL) return perror("bench: mmap"), EXIT_FAILURE;
    for (int i = 3; i < argc; i++) {
        run.count = (size_t)strtoull(argv[i], NULL, 10) / sizeof(float);
        if (has_blocks(run.kind)) run.count -= run.count % size;
        if (run.count > 0) measure_size(&run);
    }
    if (run.kind == ALLREDUCE) report_wait(&run);
    contender->barrier(contender->self);
    return EXIT_SUCCESS;
}
