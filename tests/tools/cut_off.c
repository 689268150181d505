/* A rank that adds up vectors for a while; when that fails it says how, shrinks, and goes on with
 * those who are left. usage: cut_off BYTES SECONDS. Each line tells what happened: "done", "failed
 * STATUS ms text", "shrunk SIZE ms" or "alone STATUS ms text".
 * SPDX-License-Identifier: Apache-2.0
 */
#include <dtrain.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static dtrain_status_t add_up(dtrain_comm_t *comm, float *data, size_t count, double until) {
    for (;;) {
        double begin = now();
        data[0] = dtrain_comm_rank(comm) == 0 && begin > until;
        dtrain_status_t s =
            dtrain_allreduce(comm, data, data, count, DTRAIN_F32, DTRAIN_MAX, NULL, NULL);
        if (s == DTRAIN_OK && data[0] == 0) continue;
        char text[512] = "";
        if (s != DTRAIN_OK) dtrain_last_error(text, sizeof text);
        if (s != DTRAIN_OK)
            printf("failed %s %.0f %s\n", dtrain_status_name(s), 1000 * (now() - begin), text);
        else
            printf("done\n");
        fflush(stdout);
        return s;
    }
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    size_t count = (size_t)atoll(argv[1]) / sizeof(float);
    double until = now() + atof(argv[2]);
    float *data = calloc(count, sizeof *data);
    dtrain_context_t *context;
    dtrain_comm_t *comm, *rest = NULL;
    char text[512];
    if (data == NULL || dtrain_context_create(DTRAIN_API_VERSION, NULL, &context) != DTRAIN_OK ||
        dtrain_comm_create(context, NULL, NULL, &comm) != DTRAIN_OK) {
        dtrain_last_error(text, sizeof text);
        return printf("not joined %s\n", text), 1;
    }
    printf("joined\n");
    fflush(stdout);
    if (add_up(comm, data, count, until) != DTRAIN_OK) {
        double begin = now();
        dtrain_status_t s = dtrain_comm_shrink(comm, &rest);
        double took = 1000 * (now() - begin);
        dtrain_last_error(text, sizeof text);
        if (s == DTRAIN_OK)
            printf("shrunk %d %.0f\n", dtrain_comm_size(rest), took);
        else
            printf("alone %s %.0f %s\n", dtrain_status_name(s), took, text);
        fflush(stdout);
        if (s == DTRAIN_OK) add_up(rest, data, count, now() + 0.2);
    }
    dtrain_comm_destroy(rest);
    dtrain_comm_destroy(comm);
    double begin = now();
    dtrain_context_destroy(context);
    printf("destroyed %.0f\n", 1000 * (now() - begin));
    free(data);
    return 0;
}
