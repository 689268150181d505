/* Our terminal's input for rank 0, which cannot read the terminal itself: it is not in the
 * foreground. (Input that is no terminal, rank 0 simply inherits.)
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_INPUT_H
#define RUN_INPUT_H
#include <poll.h>
#include <stddef.h>

typedef struct input {
    int to; /* non-blocking; -1: there is nothing to relay (any more) */
    size_t begin, end;
    char data[4096]; /* [begin, end) is not passed on yet */
} input_t;

/* *read_end: for rank 0, or -1 when it is to inherit. 0, or -1 with errno. */
int input_open(input_t *input, int *read_end);
void input_prepare(const input_t *input, struct pollfd polled[2]);
void input_relay(input_t *input, const struct pollfd polled[2]);

#endif
