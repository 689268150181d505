/* Writes FRAME_PING to pipes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "heart.h"

#include "channel.h"

#include <endian.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void beat(const int *fds, int count) {
    const uint32_t ping[3] = {htole32(FRAME_PING), 0, 0}; /* FRAME_HEAD bytes */
    for (;;) {
        /* A full pipe need not be written to: what is in it tells the same. */
        for (int i = 0; i < count; i++)
            if (fds[i] >= 0 && write(fds[i], ping, sizeof ping) < 0) continue;
        sleep(1);
    }
}

pid_t heart_start(const int *fds, int count) {
    const pid_t launcher = getpid(), pid = fork();
    if (pid != 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher) _exit(0);
    setpgid(0, 0); /* keys that stop or interrupt the launcher do not reach it */
    signal(SIGPIPE, SIG_IGN);
    for (int fd = 0; fd < 3; fd++) close(fd); /* whoever reads the launcher's output sees its end */
    beat(fds, count);
    _exit(0);
}

void heart_stop(pid_t heart) {
    if (heart <= 0) return;
    kill(heart, SIGKILL);
    waitpid(heart, NULL, 0);
}
