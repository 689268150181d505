// Sockets of IPv4; there is no IPv6, and other families are the kernel's.
// SPDX-License-Identifier: Apache-2.0
#include "descriptors.h"
#include "real.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

using namespace dtrain::simulator;

namespace {

int64_t each_piece(const msghdr *message, const auto &move) {
    int64_t done = 0;
    for (size_t i = 0; i < message->msg_iovlen; i++) {
        const iovec &piece = message->msg_iov[i];
        if (piece.iov_len == 0) continue;
        const int64_t result = move(piece.iov_base, piece.iov_len);
        if (result <= 0) return done > 0 ? done : result;
        done += result;
        if (size_t(result) < piece.iov_len) break;
    }
    return done;
}

struct Interface { // getifaddrs() gives two
    ifaddrs it;
    sockaddr_in address, mask;
    char name[8];
};

} // namespace

INSTEAD int socket(int family, int type, int protocol) noexcept {
    const auto real = REAL(socket);
    if (!simulated() || (family != AF_INET && family != AF_INET6))
        return real(family, type, protocol);
    step("socket");
    if (family == AF_INET6) return result_of(-EAFNOSUPPORT);
    const int object = make_object(Object::Kind::socket, type & SOCK_NONBLOCK);
    if (object > 0) {
        object_at(object).socket.host = own_process().host;
        object_at(object).socket.datagram = (type & 0xF) == SOCK_DGRAM;
    }
    return enter_descriptor(object);
}

INSTEAD int bind(int fd, const sockaddr *address, socklen_t length) noexcept {
    const auto real = REAL(bind);
    const int object = object_of(fd);
    if (object == 0) return real(fd, address, length);
    step("bind");
    return result_of(bind_to(object_at(object), address, length));
}

INSTEAD int listen(int fd, int backlog) noexcept {
    const auto real = REAL(listen);
    const int object = object_of(fd);
    if (object == 0) return real(fd, backlog);
    step("listen");
    return result_of(listen_at(object_at(object)));
}

INSTEAD int connect(int fd, const sockaddr *address, socklen_t length) {
    const auto real = REAL(connect);
    const int object = object_of(fd);
    if (object == 0) return real(fd, address, length);
    step("connect");
    const int result = connect_to(object_at(object), address, length);
    if (result != -EINPROGRESS || object_at(object).nonblocking) return result_of(result);
    wait_for_events(object, POLLOUT, never);
    return result_of(-object_at(object).socket.error);
}

INSTEAD int accept4(int fd, sockaddr *address, socklen_t *length, int flags) {
    const auto real = REAL(accept4);
    const int object = object_of(fd);
    if (object == 0) return real(fd, address, length, flags);
    const int64_t made =
        transfer("accept4", object, POLLIN, false, [&] { return accept_from(object_at(object)); });
    if (made < 0) return -1;
    object_at(int(made)).nonblocking = (flags & SOCK_NONBLOCK) != 0;
    const Socket &socket = object_at(int(made)).socket;
    if (address != nullptr) name_of(socket.peer_host, socket.peer_port, address, length);
    return enter_descriptor(int(made));
}

INSTEAD int shutdown(int fd, int how) noexcept {
    const auto real = REAL(shutdown);
    const int object = object_of(fd);
    if (object == 0) return real(fd, how);
    step("shutdown");
    if (object_at(object).socket.state != Socket::State::up) return result_of(-ENOTCONN);
    if (how != SHUT_RD) send_end(object_at(object).socket);
    return 0;
}

INSTEAD int getsockname(int fd, sockaddr *address, socklen_t *length) noexcept {
    const auto real = REAL(getsockname);
    const int object = object_of(fd);
    if (object == 0) return real(fd, address, length);
    step("getsockname");
    return name_of(object_at(object).socket.host, object_at(object).socket.port, address, length);
}

INSTEAD int getpeername(int fd, sockaddr *address, socklen_t *length) noexcept {
    const auto real = REAL(getpeername);
    const int object = object_of(fd);
    if (object == 0) return real(fd, address, length);
    step("getpeername");
    const Socket &socket = object_at(object).socket;
    if (socket.state != Socket::State::up) return result_of(-ENOTCONN);
    return name_of(socket.peer_host, socket.peer_port, address, length);
}

INSTEAD int getsockopt(int fd, int level, int name, void *value, socklen_t *length) noexcept {
    const auto real = REAL(getsockopt);
    const int object = object_of(fd);
    if (object == 0) return real(fd, level, name, value, length);
    step("getsockopt");
    Socket &socket = object_at(object).socket;
    if (level == IPPROTO_TCP && name == TCP_CONGESTION) {
        strncpy(static_cast<char *>(value), "reno", *length);
        return 0;
    }
    int number = 0;
    if (level == SOL_SOCKET && name == SO_ERROR && socket.state == Socket::State::refused)
        number = socket.error;
    if (level == SOL_SOCKET && name == SO_ACCEPTCONN)
        number = socket.state == Socket::State::listening;
    memcpy(value, &number, std::min<size_t>(*length, sizeof number));
    return 0;
}

INSTEAD int setsockopt(int fd, int level, int name, const void *value, socklen_t length) noexcept {
    const auto real = REAL(setsockopt);
    if (object_of(fd) == 0) return real(fd, level, name, value, length);
    step("setsockopt");
    return 0;
}

INSTEAD ssize_t send(int fd, const void *from, size_t length, int flags) {
    const auto real = REAL(send);
    const int object = object_of(fd);
    if (object == 0) return real(fd, from, length, flags);
    return transfer("send", object, POLLOUT, flags & MSG_DONTWAIT,
                    [&] { return send_bytes(object_at(object).socket, from, length); });
}

INSTEAD ssize_t recv(int fd, void *into, size_t length, int flags) {
    const auto real = REAL(recv);
    const int object = object_of(fd);
    if (object == 0) return real(fd, into, length, flags);
    return transfer("recv", object, POLLIN, flags & MSG_DONTWAIT,
                    [&] { return receive_bytes(object_at(object).socket, into, length); });
}

INSTEAD ssize_t sendmsg(int fd, const msghdr *message, int flags) {
    const auto real = REAL(sendmsg);
    const int object = object_of(fd);
    if (object == 0) return real(fd, message, flags);
    return transfer("sendmsg", object, POLLOUT, flags & MSG_DONTWAIT, [&] {
        return each_piece(message, [&](const void *data, size_t length) {
            return send_bytes(object_at(object).socket, data, length);
        });
    });
}

INSTEAD ssize_t recvmsg(int fd, msghdr *message, int flags) {
    const auto real = REAL(recvmsg);
    const int object = object_of(fd);
    if (object == 0) return real(fd, message, flags);
    return transfer("recvmsg", object, POLLIN, flags & MSG_DONTWAIT, [&] {
        return each_piece(message, [&](void *data, size_t length) {
            return receive_bytes(object_at(object).socket, data, length);
        });
    });
}

INSTEAD ssize_t readv(int fd, const iovec *pieces, int count) {
    const auto real = REAL(readv);
    if (object_of(fd) == 0) return real(fd, pieces, count);
    msghdr message{};
    message.msg_iov = const_cast<iovec *>(pieces);
    message.msg_iovlen = size_t(count);
    return recvmsg(fd, &message, 0);
}

// A loopback and one network.
INSTEAD int getifaddrs(ifaddrs **out) noexcept {
    const auto real = REAL(getifaddrs);
    if (!simulated()) return real(out);
    auto *all = new Interface[2]{};
    for (int i = 0; i < 2; i++) {
        Interface &one = all[i];
        strcpy(one.name, i == 0 ? "lo" : "eth0");
        socklen_t length = sizeof one.address;
        name_of(own_process().host, 0, reinterpret_cast<sockaddr *>(&one.address), &length);
        if (i == 0) one.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        one.mask = one.address;
        one.mask.sin_addr.s_addr = htonl(i == 0 ? 0xFF000000 : 0xFFFFFF00);
        one.it.ifa_name = one.name;
        one.it.ifa_flags = unsigned(IFF_UP | IFF_RUNNING | (i == 0 ? IFF_LOOPBACK : 0));
        one.it.ifa_addr = reinterpret_cast<sockaddr *>(&one.address);
        one.it.ifa_netmask = reinterpret_cast<sockaddr *>(&one.mask);
        one.it.ifa_next = i == 0 ? &all[1].it : nullptr;
    }
    *out = &all[0].it;
    return 0;
}

INSTEAD void freeifaddrs(ifaddrs *all) noexcept {
    const auto real = REAL(freeifaddrs);
    if (!simulated()) return real(all);
    delete[] reinterpret_cast<Interface *>(all);
}

// The same length on every machine.
INSTEAD int gethostname(char *name, size_t length) noexcept {
    const auto real = REAL(gethostname);
    if (!simulated()) return real(name, length);
    snprintf(name, length, "host%d", own_process().host);
    return 0;
}
