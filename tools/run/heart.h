/* A process that tells the agents once a second that the launcher lives, also while the launcher
 * waits for its output's reader or is stopped. It ends when the launcher does.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_HEART_H
#define RUN_HEART_H
#include <sys/types.h>

/* fds: the writing ends of the channels (channel.h); -1: none. Returns its process, or -1. */
pid_t heart_start(const int *fds, int count);
void heart_stop(pid_t heart);

#endif
