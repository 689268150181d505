/* Another host of the job: the ssh to it and the agent there. A job's policy is in job.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_HOST_H
#define RUN_HOST_H
#include "channel.h"
#include "child.h"
#include "options.h"
#include "output.h"

#include <poll.h>

enum { HOST_POLLED = 3, HOST_ADDRESS = 64 };

typedef enum host_state {
    HOST_UNUSED, /* this machine, or none of the job's processes is there */
    HOST_CONNECTING,
    HOST_READY,
    HOST_ENDED, /* its agent has ended because host_finish() told it so */
    HOST_LOST,  /* `why` */
} host_state_t;

typedef struct host {
    const char *name;
    host_state_t state;
    bool greeted;  /* what comes from now on are frames */
    bool ready;    /* it was READY once since it was opened */
    bool equipped; /* it has what processes of the job need: the secret, and where they meet */
    bool finishing;
    bool reported; /* the job has told of its loss */
    child_t ssh;
    channel_t channel;
    stream_t complaints;         /* of ssh, which are not shown */
    char address[HOST_ADDRESS];  /* its own, by which ssh reached it; may be empty */
    char launcher[HOST_ADDRESS]; /* this machine's, as it sees it; may be empty */
    int port;                    /* where the ranks meet, once it listens */
    double opened;
    double heard; /* when something came from it, or it could not have been noticed */
    char why[400];
} host_t;

/* Takes a frame about a process, or about the meeting. */
typedef void host_frame_fn(void *arg, host_t *host, const frame_t *frame);

/* Starts ssh and through it the agent; the host is READY, or LOST, some time later. */
void host_open(host_t *host, const char *name, const options_t *options, double now);
/* Each of these is a message, which host_handle() sends. */
void host_send_secret(host_t *host, const char *secret);
void host_listen(host_t *host, bool everywhere);
void host_meet(host_t *host);
void host_place(host_t *host, const char *text, size_t length);
void host_start(host_t *host, int number, const recipe_t *recipe, bool input, bool listener);
void host_release(host_t *host, int number);
void host_signal(host_t *host, int number, int signal);
void host_input(host_t *host, int number, const char *bytes, size_t length); /* 0: its end */
void host_finish(host_t *host); /* ends all that runs there, and the agent */

void host_prepare(const host_t *host, struct pollfd polled[HOST_POLLED]);
void host_handle(host_t *host, const struct pollfd polled[HOST_POLLED], double now,
                 host_frame_fn *take, void *arg);
void host_lose(host_t *host, const char *why);
/* Ends ssh; the agent ends what it has started when it notices, at once or by its time limit. */
void host_close(host_t *host);

#endif
