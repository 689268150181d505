// A port for what a test starts: of those that the kernel gives to nobody who asks for any port,
// and held against other tests until this process ends. ports.py has the same for Python.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <netinet/in.h>
#include <random>
#include <sys/socket.h>
#include <unistd.h>

namespace dtrain::test {

// A socket bound to this port of the loopback, or -1 if it is in use.
inline int bind_port(int type, int port) {
    const int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(uint16_t(port));
    if (bind(fd, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0) return fd;
    close(fd);
    return -1;
}

inline int free_port() {
    std::random_device random;
    for (;;) {
        const int port = 20'000 + int(random() % 12'000); // below Linux's ephemeral ports
        const int held = bind_port(SOCK_DGRAM, port); // no other test gets it while this is open
        const int probe = held < 0 ? -1 : bind_port(SOCK_STREAM, port);
        if (probe >= 0) {
            close(probe);
            return port;
        }
        if (held >= 0) close(held);
    }
}

} // namespace dtrain::test
