/* Opens the port where the ranks meet.
 * SPDX-License-Identifier: Apache-2.0 */
#include "rendezvous.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int listen_at(const struct sockaddr *address, socklen_t length, int *port) {
    struct sockaddr_storage own;
    socklen_t own_length = sizeof own;
    const int off = 0, fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    if (address->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off); /* IPv4, too */
    if (bind(fd, address, length) != 0 || listen(fd, SOMAXCONN) != 0 ||
        getsockname(fd, (struct sockaddr *)&own, &own_length) != 0) {
        const int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    *port = ntohs(own.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&own)->sin6_port
                                            : ((struct sockaddr_in *)&own)->sin_port);
    return fd;
}

int rendezvous_listen(bool everywhere, int *port) {
    const struct sockaddr_in6 all = {.sin6_family = AF_INET6, .sin6_addr = in6addr_any};
    struct sockaddr_in four = {.sin_family = AF_INET};
    if (everywhere) {
        const int fd = listen_at((const struct sockaddr *)&all, sizeof all, port);
        if (fd >= 0) return fd; /* else a host without IPv6 */
    }
    four.sin_addr.s_addr = htonl(everywhere ? INADDR_ANY : INADDR_LOOPBACK);
    return listen_at((const struct sockaddr *)&four, sizeof four, port);
}

void rendezvous_url(const char *host, int port, char *url, size_t size) {
    snprintf(url, size, strchr(host, ':') != NULL ? "tcp://[%s]:%d" : "tcp://%s:%d", host, port);
}
