/* The port where the ranks meet. It is opened on rank 0's host by the process that starts rank 0,
 * which inherits it, so that no other program can take it in between.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_RENDEZVOUS_H
#define RUN_RENDEZVOUS_H
#include <stdbool.h>
#include <stddef.h>

/* Listens at a free port of 127.0.0.1, or (everywhere) of all addresses. Returns the descriptor,
 * which is closed on exec, or -1 with errno. */
int rendezvous_listen(bool everywhere, int *port);
/* Writes "tcp://host:port". */
void rendezvous_url(const char *host, int port, char *url, size_t size);

#endif
