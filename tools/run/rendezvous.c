/* Opens the port where the ranks meet, and makes the job's secret.
 * SPDX-License-Identifier: Apache-2.0 */
#include "rendezvous.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int failed(const char *what) {
    fprintf(stderr, "dtrain-run: %s: %s\n", what, strerror(errno));
    return -1;
}

/* Binds the port here; rank 0 inherits it, so that no other program can take it in between. */
static int listen_on_loopback(rendezvous_t *r) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    r->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (r->listen_fd < 0 || bind(r->listen_fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(r->listen_fd, SOMAXCONN) != 0 ||
        getsockname(r->listen_fd, (struct sockaddr *)&address, &length) != 0)
        return failed("cannot listen on 127.0.0.1");
    snprintf(r->url, sizeof r->url, "tcp://127.0.0.1:%d", ntohs(address.sin_port));
    return 0;
}

/* Stores the secret in memory that ends with this process. Processes of the same user read it
 * through /proc: it is neither on disk nor in an environment, and programs that wrappers start
 * without their descriptors find it, too. */
static int make_secret(rendezvous_t *r) {
    unsigned char random[32];
    char text[2 * sizeof random + 1];
    if (getenv("DTRAIN_SECRET") != NULL || getenv("DTRAIN_SECRET_FILE") != NULL) return 0;
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return failed("cannot create a secret");
    for (size_t i = 0; i < sizeof random; i++) sprintf(text + 2 * i, "%02x", random[i]);
    int fd = memfd_create("dtrain-secret", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || write(fd, text, sizeof text - 1) != (ssize_t)sizeof text - 1 ||
        fchmod(fd, 0400) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return failed("cannot store the secret");
    snprintf(r->secret, sizeof r->secret, "/proc/%d/fd/%d", (int)getpid(), fd);
    explicit_bzero(random, sizeof random);
    explicit_bzero(text, sizeof text);
    return 0;
}

int rendezvous_create(rendezvous_t *r) {
    *r = (rendezvous_t){.listen_fd = -1};
    return listen_on_loopback(r) == 0 ? make_secret(r) : -1;
}
