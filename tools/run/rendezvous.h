/* The address where the ranks meet, and the secret by which they authenticate each other.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_RENDEZVOUS_H
#define RUN_RENDEZVOUS_H

typedef struct rendezvous {
    int listen_fd;   /* for rank 0 to inherit; -1 once closed */
    char url[64];    /* tcp://127.0.0.1:port */
    char secret[64]; /* path of the secret's file; empty: the environment has a secret */
} rendezvous_t;

/* Returns 0, or -1 with the reason on stderr. The descriptors are closed on exec. */
int rendezvous_create(rendezvous_t *rendezvous);

#endif
