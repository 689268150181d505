/* Compares a name with this host's names and addresses.
 * SPDX-License-Identifier: Apache-2.0 */
#include "local_name.h"

#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Only own addresses can be bound. */
static bool is_own(const struct addrinfo *address) {
    const int fd = socket(address->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool own = fd >= 0 && bind(fd, address->ai_addr, address->ai_addrlen) == 0;
    if (fd >= 0) close(fd);
    return own;
}

bool is_local_name(const char *name) {
    char own[256] = "";
    const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM};
    struct addrinfo *all = NULL;
    if (gethostname(own, sizeof own - 1) == 0 && strcmp(name, own) == 0) return true;
    if (strcmp(name, "localhost") == 0) return true;
    if (strchr(name, '@') != NULL || getaddrinfo(name, NULL, &hints, &all) != 0) return false;
    bool local = false;
    for (const struct addrinfo *one = all; one != NULL && !local; one = one->ai_next)
        local = is_own(one);
    freeaddrinfo(all);
    return local;
}
