/* Signals of children, users and pipes, received where they are waited for.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_SIGNALS_H
#define RUN_SIGNALS_H
#include <stddef.h>
#include <sys/types.h>

/* Blocks CHLD, INT, TERM and HUP, and returns a non-blocking descriptor for them; < 0: errno. */
int signals_open(void);
/* The next signal that came, or 0. */
int signals_take(int signals);

/* write() that fails with EPIPE instead of raising SIGPIPE, which stays as it is for programs that
 * are started. */
ssize_t write_quietly(int fd, const void *bytes, size_t size);

#endif
