/* What a call costs from C: alone, the nanoseconds of an all-reduce of one element, as in the other
 * languages' calls programs (bindings/LANGUAGE/bench); with more ranks the microseconds of one of
 * 1 MiB. Prints "C alone NS" or "C 1MiB US": the median of rounds.
 * SPDX-License-Identifier: Apache-2.0 */
#include <dtrain.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 51, CALLS = 20000, REDUCTIONS = 20, ELEMENTS = 1 << 18 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void check(dtrain_status_t status) {
    char text[512];
    if (status == DTRAIN_OK) return;
    dtrain_last_error(text, sizeof text);
    fprintf(stderr, "%s: %s\n", dtrain_status_name(status), text);
    exit(EXIT_FAILURE);
}

int main(void) {
    float *x = calloc(ELEMENTS, sizeof *x); /* aligned as the other languages' arrays are */
    double rounds[ROUNDS];
    dtrain_context_t *context;
    dtrain_comm_t *world;
    if (x == NULL) return EXIT_FAILURE;
    check(dtrain_context_create(DTRAIN_API_VERSION, NULL, &context));
    check(dtrain_comm_create(context, NULL, NULL, &world));
    const int alone = dtrain_comm_size(world) == 1, calls = alone ? CALLS : REDUCTIONS;
    const uint64_t count = alone ? 1 : ELEMENTS;
    for (int round = 0; round < ROUNDS; round++) {
        check(dtrain_barrier(world, NULL, NULL));
        const double begin = now();
        for (int i = 0; i < calls; i++)
            check(dtrain_allreduce(world, x, x, count, DTRAIN_F32, DTRAIN_SUM, NULL, NULL));
        rounds[round] = (now() - begin) / calls;
    }
    qsort(rounds, ROUNDS, sizeof *rounds, ascending);
    if (alone)
        printf("C alone %.0f\n", rounds[ROUNDS / 2]);
    else if (dtrain_comm_rank(world) == 0)
        printf("C 1MiB %.1f\n", rounds[ROUNDS / 2] / 1e3);
    check(dtrain_comm_destroy(world));
    check(dtrain_context_destroy(context));
    free(x);
    return EXIT_SUCCESS;
}
