/* Relays the terminal's input to rank 0 through a socket.
 * SPDX-License-Identifier: Apache-2.0 */
#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

int input_open(input_t *input, int *read_end) {
    int ends[2];
    *input = (input_t){.to = -1};
    *read_end = -1;
    if (!isatty(STDIN_FILENO)) return 0;
    /* A socket, since writing to it can fail without SIGPIPE. */
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return -1;
    input->to = ends[0];
    *read_end = ends[1];
    return fcntl(input->to, F_SETFL, O_NONBLOCK);
}

void input_prepare(const input_t *input, struct pollfd polled[2]) {
    const int pending = input->begin < input->end;
    /* Reading the terminal in the background would stop this process. */
    const int readable = input->to >= 0 && !pending && tcgetpgrp(STDIN_FILENO) == getpgrp();
    polled[0] = (struct pollfd){.fd = readable ? STDIN_FILENO : -1, .events = POLLIN};
    polled[1] = (struct pollfd){.fd = pending ? input->to : -1, .events = POLLOUT};
}

static void end(input_t *input) {
    close(input->to);
    input->to = -1;
    input->begin = input->end = 0;
}

void input_relay(input_t *input, const struct pollfd polled[2]) {
    ssize_t n;
    if (polled[0].revents != 0) {
        n = read(STDIN_FILENO, input->data, sizeof input->data);
        if (n > 0)
            input->begin = 0, input->end = (size_t)n;
        else if (n == 0 || (errno != EINTR && errno != EAGAIN))
            end(input);
    } else if (polled[1].revents != 0) {
        n = send(input->to, input->data + input->begin, input->end - input->begin, MSG_NOSIGNAL);
        if (n > 0)
            input->begin += (size_t)n;
        else if (errno != EINTR && errno != EAGAIN)
            end(input); /* rank 0 has closed its input */
    }
}
