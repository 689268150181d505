/* How far apart two CPUs are at the moment: one way of a cache line, in ns, and a name for it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * On virtual machines the host moves CPUs about, which changes every result below 1 MiB by up to a
 * factor of 4: results of different states do not compare. */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 60, IGNORED = 20, PROBES = 31 };
typedef struct lines {
    _Alignas(128) atomic_int ping;
    _Alignas(128) atomic_int pong;
} lines_t;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static void pin(int index) { /* to the index-th of our CPUs */
    cpu_set_t ours, one;
    CPU_ZERO(&one);
    sched_getaffinity(0, sizeof ours, &ours);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &ours) && index-- == 0) CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void answer(lines_t *lines) {
    pin(1);
    for (int i = 1; i <= ROUNDS * PROBES; i++) {
        while (atomic_load_explicit(&lines->ping, memory_order_acquire) != i) {
        }
        atomic_store_explicit(&lines->pong, i, memory_order_release);
    }
    _exit(0);
}

static double ask(lines_t *lines) {
    double ways[PROBES], begin = 0;
    for (int i = 1; i <= ROUNDS * PROBES; i++) {
        if (i % ROUNDS == IGNORED) begin = now();
        atomic_store_explicit(&lines->ping, i, memory_order_release);
        while (atomic_load_explicit(&lines->pong, memory_order_acquire) != i) {
        }
        if (i % ROUNDS == 0) ways[i / ROUNDS - 1] = (now() - begin) / (ROUNDS - IGNORED) / 2;
    }
    qsort(ways, PROBES, sizeof *ways, compare);
    return ways[PROBES / 2];
}

int main(void) {
    lines_t *lines =
        mmap(NULL, sizeof *lines, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (lines == MAP_FAILED) return perror("probe: mmap"), EXIT_FAILURE;
    cpu_set_t ours;
    if (sched_getaffinity(0, sizeof ours, &ours) != 0 || CPU_COUNT(&ours) < 2)
        return puts("one-cpu 0"), 0;
    const pid_t child = fork();
    if (child < 0) return perror("probe: fork"), EXIT_FAILURE;
    if (child == 0) answer(lines);
    pin(0);
    const double way = ask(lines);
    waitpid(child, NULL, 0);
    printf("%s %.0f\n",
           way < 42                  ? "shared"
           : way < 120               ? "near"
           : way >= 150 && way < 600 ? "FAR"
                                     : "mixed",
           way);
    return 0;
}
