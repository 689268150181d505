/* SPDX-License-Identifier: Apache-2.0 */
#include "line.h"

#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 60, IGNORED = 20, PROBES = 31 };
static const double patience_ns = 100e6;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int has_come(const unsigned *line, unsigned number, double deadline_ns) {
    for (unsigned spins = 1; __atomic_load_n(line, __ATOMIC_ACQUIRE) != number; spins++)
        if (spins % 1024 == 0 && now() > deadline_ns) return 0;
    return 1;
}

/* The numbers go on over all calls, so an old one is never taken for a new one. */
double line_ns(lines_t *lines, int begins) {
    static __thread unsigned number;
    double ways[PROBES], begin = 0;
    const double deadline_ns = now() + patience_ns;
    unsigned last = number + ROUNDS * PROBES;
    for (unsigned i = 1; number < last; i++) {
        if (i % ROUNDS == IGNORED) begin = now();
        number++;
        if (begins) __atomic_store_n(&lines->ping, number, __ATOMIC_RELEASE);
        if (!has_come(begins ? &lines->pong : &lines->ping, number, deadline_ns)) {
            number = last;
            return 0;
        }
        if (!begins) __atomic_store_n(&lines->pong, number, __ATOMIC_RELEASE);
        if (i % ROUNDS == 0) ways[i / ROUNDS - 1] = (now() - begin) / (ROUNDS - IGNORED) / 2;
    }
    qsort(ways, PROBES, sizeof *ways, compare);
    return ways[PROBES / 2];
}

const char *line_state(double ns) {
    if (ns > 0 && ns < 42) return "shared";
    if (ns >= 42 && ns < 110) return "near";
    return ns >= 110 && ns < 600 ? "FAR" : "mixed";
}
