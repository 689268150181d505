/* Opens and reads a signalfd; keeps SIGPIPE away.
 * SPDX-License-Identifier: Apache-2.0 */
#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

int signals_open(void) {
    sigset_t set;
    sigemptyset(&set);
    for (const int *s = (const int[]){SIGCHLD, SIGINT, SIGTERM, SIGHUP, 0}; *s != 0; s++)
        sigaddset(&set, *s);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int signals_take(int signals) {
    struct signalfd_siginfo info;
    return read(signals, &info, sizeof info) == (ssize_t)sizeof info ? (int)info.ssi_signo : 0;
}

ssize_t write_quietly(int fd, const void *bytes, size_t size) {
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction before;
    sigaction(SIGPIPE, &ignore, &before);
    const ssize_t n = write(fd, bytes, size);
    const int error = errno;
    sigaction(SIGPIPE, &before, NULL);
    errno = error;
    return n;
}
