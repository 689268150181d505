/* The script that prints which hosts are there now. It runs in the background, again and again.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_DISCOVERY_H
#define RUN_DISCOVERY_H
#include "child.h"
#include "host_list.h"
#include "output.h"

#include <poll.h>

enum { DISCOVERY_POLLED = 3 };

typedef enum discovered {
    DISCOVERED_NOTHING, /* the script runs, or it is not time yet */
    DISCOVERED_HOSTS,   /* `hosts` is new */
    DISCOVERED_FAILURE, /* `why`, `status`; `hosts` stays */
} discovered_t;

typedef struct discovery {
    const char *script; /* NULL: there is none */
    double interval;
    child_t child; /* while it runs */
    int output;    /* a pipe, non-blocking; -1: not open */
    char *text;    /* what it has printed */
    size_t length;
    stream_t complaints; /* its stderr, of which the last line goes into `why` */
    double begun;        /* the last run */
    host_list_t hosts;   /* the last good list */
    char why[700];
    bool failed; /* discovery_step() has still to say so */
    int status;  /* after a failure: the launcher's exit status for it */
} discovery_t;

void discovery_open(discovery_t *discovery, const char *script, double interval);
void discovery_prepare(const discovery_t *discovery, struct pollfd polled[DISCOVERY_POLLED]);
void discovery_handle(discovery_t *discovery, const struct pollfd polled[DISCOVERY_POLLED]);
/* Starts the script when it is time, kills it when it takes too long, and reads its list when it
 * has ended. */
discovered_t discovery_step(discovery_t *discovery, double now);
void discovery_close(discovery_t *discovery);

#endif
