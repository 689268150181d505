/* Relays input to rank 0 through a socket, or through the agent of its host.
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

void input_open_at(input_t *input, host_t *host, int number) {
    *input = (input_t){.to = -1, .host = host, .number = number};
}

void input_take(input_t *input, const host_t *host, int number) {
    if (host == input->host && number == input->number) input->untaken = false;
}

/* Reading the terminal in the background would stop this process. */
static bool may_read(void) { return !isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) == getpgrp(); }

void input_prepare(const input_t *input, struct pollfd polled[2]) {
    const bool pending = input->begin < input->end;
    const bool relays = input->to >= 0 || (input->host != NULL && input->host->state == HOST_READY);
    const bool readable = relays && !pending && !input->untaken && may_read();
    polled[0] = (struct pollfd){.fd = readable ? STDIN_FILENO : -1, .events = POLLIN};
    polled[1] = (struct pollfd){.fd = pending ? input->to : -1, .events = POLLOUT};
}

void input_close(input_t *input) {
    if (input->to >= 0) close(input->to);
    *input = (input_t){.to = -1};
}

static void end(input_t *input) {
    if (input->host != NULL) host_input(input->host, input->number, NULL, 0);
    input_close(input);
}

static void pass_on(input_t *input, size_t size) {
    if (input->host == NULL) {
        input->begin = 0, input->end = size;
        return;
    }
    host_input(input->host, input->number, input->data, size);
    input->untaken = true;
}

void input_relay(input_t *input, const struct pollfd polled[2]) {
    ssize_t n;
    if (polled[0].revents != 0) {
        n = read(STDIN_FILENO, input->data, sizeof input->data);
        if (n > 0)
            pass_on(input, (size_t)n);
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
