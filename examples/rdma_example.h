/* What the RDMA examples share: they join over the transports that their argument names.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RDMA_EXAMPLE_H
#define RDMA_EXAMPLE_H
#include <dtrain.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline void check(dtrain_status_t status, const char *what) {
    char text[1024];
    if (status == DTRAIN_OK) return;
    dtrain_last_error(text, sizeof text);
    fprintf(stderr, "%s: %s: %s\n", what, dtrain_status_name(status), text);
    exit(1);
}

static inline double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* What the library has opened of the transports it was told. */
static inline void print_devices(dtrain_context_t *context) {
    char text[16384], transport[64], device[256];
    dtrain_context_describe(context, text, sizeof text);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
        if (sscanf(line, " {\"name\": \"%63[^\"]\", \"device\": \"%255[^\"]\"", transport,
                   device) == 2)
            printf("transport %s, device %s\n", transport, device);
}

/* Of these transports, best first: the program's argument, or the environment's DTRAIN_TRANSPORTS,
 * or RDMA by libfabric. Nothing else is opened, so nothing else can have been used. */
static inline dtrain_comm_t *join(int argc, char **argv, dtrain_context_t **context) {
    dtrain_options_t *options;
    dtrain_comm_t *comm;
    check(dtrain_options_create(&options), "options");
    if (argc > 1 || getenv("DTRAIN_TRANSPORTS") == NULL)
        check(dtrain_options_set(options, "transports", argc > 1 ? argv[1] : "ofi"), "transports");
    check(dtrain_context_create(DTRAIN_API_VERSION, options, context), "context");
    dtrain_options_destroy(options);
    check(dtrain_comm_create(*context, NULL, NULL, &comm), "join");
    if (dtrain_comm_rank(comm) == 0) print_devices(*context);
    return comm;
}

static inline void leave(dtrain_comm_t *comm, dtrain_context_t *context) {
    check(dtrain_comm_destroy(comm), "leave");
    check(dtrain_context_destroy(context), "context");
}

#endif
