/* Answers GET /metrics with a server's counters, for Prometheus.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTRAIN_SERVER_METRICS_H
#define DTRAIN_SERVER_METRICS_H
#include "dtrain.h"
#include "token.h"

#include <pthread.h>

/* Serves 16 connections at a time, each for at most two seconds with one request of at most 4 KiB;
 * further ones push out the oldest whose request has not come. It allocates nothing for them but
 * the answer to those who have the token. */
struct metrics {
    dtrain_server_t *server;
    int listener, stop; /* -1: not open; stop: an eventfd */
    int started;
    struct token token; /* that requests must have */
    pthread_t thread;
};

/* address: "PORT" (on 127.0.0.1) or "ADDRESS:PORT", which needs a token unless it is one of the
 * loopback; port 0 chooses a free port. Returns 0, or -1 with the reason on stderr. */
int metrics_listen(struct metrics *metrics, const char *address);
/* Starts to answer, and prints the address to stdout. Returns 0, or -1 with the reason on
 * stderr. */
int metrics_start(struct metrics *metrics, dtrain_server_t *server);
/* May be called even if metrics_start() or metrics_listen() was not. */
void metrics_stop(struct metrics *metrics);

#endif
