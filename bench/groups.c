/* The cost of a communicator of two ranks: made by the two alone, and by all ranks of the job.
 * usage: dtrain-run -n N -- bench_groups [ROUNDS]
 * SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <string.h>

enum { most = 10000, kept_at_a_time = 10 };
static const int32_t two[] = {1, 0};

static dtrain_comm_t *by_the_two(dtrain_comm_t *world) {
    dtrain_comm_t *made = NULL;
    MUST(dtrain_comm_create_group(world, two, 2, 0, 0, &made));
    return made;
}

static dtrain_comm_t *by_all(dtrain_comm_t *world) {
    dtrain_comm_t *made = NULL;
    MUST(dtrain_comm_subset(world, two, 2, &made));
    return made;
}

static int threads(void) {
    char line[128];
    int count = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, "Threads:", 8) == 0) count = atoi(line + 8);
    if (status != NULL) fclose(status);
    return count;
}

/* Makes `rounds` communicators, some of which exist at a time. `all`: those that make them. */
static void measure(dtrain_comm_t *world, dtrain_comm_t *all, const char *name,
                    dtrain_comm_t *(*make)(dtrain_comm_t *world), int rounds) {
    static double made_us[most], used_us[most], gone_us[most];
    dtrain_comm_t *kept[kept_at_a_time] = {NULL};
    int round;
    for (round = -kept_at_a_time; round < rounds; round++) { /* the first ones do not count */
        const int at = round < 0 ? 0 : round;
        dtrain_comm_t **place = &kept[(round + kept_at_a_time) % kept_at_a_time];
        float x = 1;
        double begin = now_us();
        MUST(dtrain_comm_destroy(*place));
        gone_us[at] = now_us() - begin;
        MUST(dtrain_barrier(all, NULL, NULL));
        begin = now_us();
        *place = make(world);
        made_us[at] = now_us() - begin;
        if (*place == NULL) continue;
        begin = now_us();
        MUST(dtrain_allreduce(*place, &x, &x, 1, DTRAIN_F32, DTRAIN_SUM, NULL, NULL));
        used_us[at] = now_us() - begin;
    }
    if (dtrain_comm_rank(world) == 0) {
        sort(made_us, (size_t)rounds);
        sort(used_us, (size_t)rounds);
        sort(gone_us, (size_t)rounds);
        printf("%s: made in %.0f us (90 %% within %.0f us), first all-reduce %.0f us, destroyed in "
               "%.0f us; %d threads\n",
               name, made_us[rounds / 2], made_us[rounds * 9 / 10], used_us[rounds / 2],
               gone_us[rounds / 2], threads());
    }
    for (round = 0; round < kept_at_a_time; round++) MUST(dtrain_comm_destroy(kept[round]));
}

int main(int argc, char **argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 300;
    dtrain_context_t *context = NULL;
    dtrain_comm_t *world = NULL, *pair = NULL;
    if (rounds < 1 || rounds > most) return fprintf(stderr, "ROUNDS: 1 to %d\n", most), 1;
    MUST(dtrain_context_create(DTRAIN_API_VERSION, NULL, &context));
    MUST(dtrain_comm_create(context, NULL, NULL, &world));
    if (dtrain_comm_size(world) < 2) return fprintf(stderr, "at least 2 ranks are needed\n"), 1;
    MUST(dtrain_comm_subset(world, two, 2, &pair));
    if (pair != NULL) measure(world, pair, "by the two alone", by_the_two, rounds);
    MUST(dtrain_barrier(world, NULL, NULL));
    measure(world, world, "by all ranks", by_all, rounds);
    MUST(dtrain_comm_destroy(pair));
    MUST(dtrain_comm_destroy(world));
    MUST(dtrain_context_destroy(context));
    return 0;
}
