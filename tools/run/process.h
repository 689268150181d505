/* One process of the job, here or on another host: a worker or a server.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_PROCESS_H
#define RUN_PROCESS_H
#include "child.h"
#include "host.h"
#include "output.h"
#include "places.h"

typedef struct process {
    bool server;      /* else a worker */
    bool newcomer;    /* a worker that comes while an elastic job runs */
    int index;        /* what its output is prefixed with: rank, or number of the server, or of the
                         worker if the job is elastic: newcomers count on */
    int number;       /* of the process, for frames; no other one has had it */
    const char *kind; /* "rank", "worker" or "server", for messages */
    place_t place;
    host_t *host;    /* NULL: this one */
    recipe_t recipe; /* until it is confirmed */
    child_t child;   /* if it is here */
    bool started, confirmed;
    failure_t failure;   /* once confirmed: why its program does not run */
    bool ended, handled; /* handled: the job has counted its end */
    bool lost;           /* ended because its host was lost */
    double began;        /* when it was started */
    int formed;          /* of a newcomer: how many generations had formed by then */
    bool leaving;        /* it was told to end, which is no failure */
    double kill_at;      /* if it is leaving */
    int status, signal;  /* once ended: as in child.h */
    stream_t out, err;
} process_t;

/* Runs its recipe. input: rank 0's; here a descriptor (< 0: the launcher's), which is closed; on
 * another host it is relayed (input.h). listener: for a rank 0 that inherits one; -1: none, or it
 * is on another host. */
void process_start(process_t *process, int input, bool listens, int listener);
/* For a process that is here: waits until it is known whether its program runs. */
void process_confirm(process_t *process);
/* Prints the failure of its start; returns the exit status for it. */
int process_failed(const process_t *process);
bool process_poll(process_t *process); /* checks whether a process that is here has ended */
/* Takes what the process's host says of it. */
void process_take(process_t *process, const frame_t *frame);
void process_lose(process_t *process);                     /* its host is lost */
void process_signal(const process_t *process, int number); /* to the whole group */
/* Frees what it has, after its end; what it has left running in its group is killed. */
void process_release(process_t *process);
void process_name(const process_t *process, char *name, size_t size); /* "rank 0", "server 1" */

#endif
