/* Passes the launcher's terminal input to rank 0, which is not in the foreground and so cannot read
 * the terminal. (If the input is no terminal, rank 0 inherits it.)
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_INPUT_H
#define RUN_INPUT_H
#include <poll.h>
#include <stddef.h>

typedef struct input {
    int to; /* non-blocking; -1: nothing (more) to relay */
    size_t begin, end;
    char data[4096]; /* [begin, end) is still to be passed on */
} input_t;

/* *read_end: the descriptor for rank 0, or -1 when it inherits the input. Returns 0, or -1 with
 * errno. */
int input_open(input_t *input, int *read_end);
void input_prepare(const input_t *input, struct pollfd polled[2]);
void input_relay(input_t *input, const struct pollfd polled[2]);

#endif
