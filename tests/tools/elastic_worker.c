/* A worker of an elastic job: it counts steps with the others, and goes on with those who come and
 * without those who are lost.
 *
 * usage: elastic_worker FOLDER
 *
 * Files in the folder say what it does. crash, or crash-HOST on this host (by the variable ON): it
 * exits with 3 at once. stop: all workers agree to end, with 0. fail: the same, with 4. deaf: it
 * takes nobody in.
 *
 * It prints "pid N" first, and for each generation, after its first step, "rank R of N, step S": S
 * is the step with which it has begun, 0 or "above 0".
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtrain.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int exists(const char *folder, const char *name, const char *more) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s%s", folder, name, more);
    return access(path, F_OK) == 0;
}

static void check(dtrain_status_t status, const char *what) {
    char text[1024];
    if (status == DTRAIN_OK) return;
    dtrain_last_error(text, sizeof text);
    fprintf(stderr, "%s: %s (%s)\n", what, text, dtrain_status_name(status));
    exit(1);
}

static void say_once(dtrain_comm_t *world, int32_t *begun_with) {
    if (*begun_with >= 0) {
        printf("rank %d of %d, step %s\n", dtrain_comm_rank(world), dtrain_comm_size(world),
               *begun_with > 0 ? "above 0" : "0");
        fflush(stdout);
    }
    *begun_with = -1;
}

/* Everybody goes on at the step that rank 0 has reached. */
static dtrain_status_t begin(dtrain_comm_t *world, int32_t *step, int32_t *begun_with) {
    const dtrain_status_t status = dtrain_broadcast(world, step, 1, DTRAIN_I32, 0, NULL, NULL);
    *begun_with = *step;
    return status;
}

int main(int argc, char **argv) {
    const char *folder = argc == 2 ? argv[1] : ".", *on = getenv("ON");
    char host[300] = "-none";
    dtrain_context_t *context = NULL;
    dtrain_comm_t *world = NULL, *next = NULL;
    int32_t step = 0, begun_with = -1;
    int result = 0;
    if (on != NULL) snprintf(host, sizeof host, "-%s", on);
    printf("pid %d\n", (int)getpid());
    fflush(stdout);
    if (exists(folder, "crash", "") || exists(folder, "crash", host)) return 3;
    check(dtrain_context_create(DTRAIN_API_VERSION, NULL, &context), "context");
    check(dtrain_comm_create(context, NULL, NULL, &world), "join");
    for (dtrain_status_t status = begin(world, &step, &begun_with);;) {
        int32_t news[3] = {dtrain_comm_newcomers(world) > 0 && !exists(folder, "deaf", ""),
                           exists(folder, "stop", ""), exists(folder, "fail", "")};
        if (status == DTRAIN_OK)
            status = dtrain_allreduce(world, news, news, 3, DTRAIN_I32, DTRAIN_MAX, NULL, NULL);
        if (status == DTRAIN_OK && news[2]) result = 4;
        if (status == DTRAIN_OK && (news[1] || news[2])) break;
        if (status == DTRAIN_OK && !news[0]) {
            step++;
            say_once(world, &begun_with);
            usleep(5000);
            continue;
        }
        check(dtrain_comm_reform(world, NULL, &next), "reform");
        check(dtrain_comm_destroy(world), "destroy");
        world = next;
        status = begin(world, &step, &begun_with);
    }
    check(dtrain_comm_destroy(world), "destroy");
    check(dtrain_context_destroy(context), "destroy the context");
    return result;
}
