/* Passes the launcher's input to rank 0 where rank 0 cannot read it itself: the terminal's, since
 * rank 0 is not in the foreground, and all input if rank 0 is on another host.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_INPUT_H
#define RUN_INPUT_H
#include "host.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct input {
    int to; /* a socket, non-blocking; -1: rank 0 is elsewhere, or there is nothing to relay */
    host_t *host; /* of rank 0; NULL: this one, or there is nothing (more) to relay */
    int number;   /* of rank 0's process on that host */
    bool untaken; /* the host has not said that rank 0 has taken what was sent */
    size_t begin, end;
    char data[FRAME_BYTES]; /* [begin, end) is still to be passed on, to the socket */
} input_t;

/* *read_end: the descriptor for rank 0, or -1 when it inherits the input. Returns 0, or -1 with
 * errno. */
int input_open(input_t *input, int *read_end);
void input_open_at(input_t *input, host_t *host, int number);
void input_take(input_t *input, const host_t *host, int number); /* the process has taken it */
void input_close(input_t *input); /* the process that got it has ended */
void input_prepare(const input_t *input, struct pollfd polled[2]);
void input_relay(input_t *input, const struct pollfd polled[2]);

#endif
