// Opens local sockets, and passes messages and descriptors over them.
// SPDX-License-Identifier: Apache-2.0
#include "shm/socket.h"
#include "common/uncancelled.h"
#include "shm/system_error.h"

#include <cstdio>
#include <sys/socket.h>
#include <sys/un.h>

namespace dtrain::shm {
namespace {

struct SocketAddress {
    sockaddr_un where{};
    socklen_t len = 0;
    const sockaddr *get() const { return reinterpret_cast<const sockaddr *>(&where); }
};

// A leading NUL byte makes the name abstract.
SocketAddress named(const Name &name, const char *purpose) {
    SocketAddress address;
    address.where.sun_family = AF_UNIX;
    char *text = address.where.sun_path + 1;
    int n = std::snprintf(text, sizeof address.where.sun_path - 1, "dtrain/%s/", purpose);
    for (uint8_t byte : name) n += std::snprintf(text + n, 3, "%02x", byte);
    address.len =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1) + static_cast<socklen_t>(n);
    return address;
}

constexpr int flags = SOCK_CLOEXEC | SOCK_NONBLOCK;

union Control { // room for one descriptor, aligned as the kernel requires
    cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

} // namespace

Status listen_as(const Host &host, const Name &name, Fd &out) {
    Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | flags, 0));
    SocketAddress address = named(name, "shm");
    if (!fd || bind(fd.get(), address.get(), address.len) != 0 || listen(fd.get(), SOMAXCONN) != 0)
        return fail_errno(host, errno, "listening on a local socket");
    out = std::move(fd);
    return DTRAIN_OK;
}

Status connect_to(const Host &host, const Name &name, Fd &out) {
    Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | flags, 0));
    if (!fd) return fail_errno(host, errno, "creating a local socket");
    SocketAddress address = named(name, "shm");
    if (connect(fd.get(), address.get(), address.len) != 0) {
        if (errno == EAGAIN) return DTRAIN_ERR_BUSY;
        return fail_errno(host, errno, "connecting to the peer's local socket");
    }
    out = std::move(fd);
    return DTRAIN_OK;
}

pid_t peer_pid(const Fd &fd) {
    ucred peer;
    socklen_t len = sizeof peer;
    return getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 ? peer.pid : 0;
}

bool is_peer_trusted(const Fd &fd) {
    ucred peer;
    socklen_t len = sizeof peer;
    return getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

bool accept_from(const Fd &listener, Fd &out) {
    out = Fd(accept4(listener.get(), nullptr, nullptr, flags));
    if (!out) return false;
    if (!is_peer_trusted(out)) out.reset();
    return true;
}

bool send_message(const Fd &fd, const void *data, size_t len, int pass) {
    iovec part{const_cast<void *>(data), len};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    Control control{};
    if (pass >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(&control.header), &pass, sizeof pass);
    }
    ssize_t n;
    do n = sendmsg(fd.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n >= 0;
}

ssize_t receive_message(const Fd &fd, void *data, size_t len, Fd &passed) {
    iovec part{data, len};
    Control control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = &control;
    // No room for a second descriptor, which would leak.
    message.msg_controllen = CMSG_LEN(sizeof(int));
    ssize_t n;
    do n = recvmsg(fd.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0) return errno == ECONNRESET ? 0 : -errno;
    passed.reset();
    if (cmsghdr *header = CMSG_FIRSTHDR(&message);
        header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int))) {
        int received;
        std::memcpy(&received, CMSG_DATA(header), sizeof received);
        passed = Fd(received);
    }
    if (message.msg_flags & MSG_CTRUNC)
        return -EMFILE; // a descriptor was sent, but this process cannot hold it
    return message.msg_flags & MSG_TRUNC ? -EMSGSIZE : n;
}

Status Doorbell::open(const Host &host, const Name &name) {
    Fd fd(socket(AF_UNIX, SOCK_DGRAM | flags, 0));
    SocketAddress address = named(name, "bell");
    if (!fd || bind(fd.get(), address.get(), address.len) != 0)
        return fail_errno(host, errno, "creating a local socket for wake-ups");
    fd_ = std::move(fd);
    return DTRAIN_OK;
}

// Failures are ignored: a full queue also wakes its owner, and a peer that is gone needs no waking.
void Doorbell::ring(const Name &name) const {
    SocketAddress address = named(name, "bell");
    const tp::Uncancelled uncancelled; // a canceled thread ends where it waits, not here
    sendto(fd_.get(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, address.get(), address.len);
}

bool Doorbell::drain() const {
    char byte;
    int rings = 0;
    while (rings < 64 && recv(fd_.get(), &byte, 1, MSG_DONTWAIT) >= 0) rings++;
    return rings > 0;
}

} // namespace dtrain::shm
