// Creates and tunes sockets.
// SPDX-License-Identifier: Apache-2.0
#include "tcp/socket.h"

#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>

namespace dtrain::tcp {
namespace {

// The core's heartbeat finds a silent peer; these options only make sure that a dead socket ends
// some day (keepalive while idle, the user timeout while data is unacknowledged).
constexpr int keep_idle_s = 30, keep_interval_s = 10, keep_probes = 6;
constexpr int user_timeout_ms = 90'000;

struct Congestion { // the name of a congestion control
    char name[16] = "";
    bool operator==(const Congestion &other) const { return !strcmp(name, other.name); }
};
constexpr Congestion bbr{"bbr"}, unpaced{"reno"};

Congestion congestion_of(int fd) {
    Congestion c;
    socklen_t len = sizeof c.name - 1;
    getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, c.name, &len);
    return c;
}
bool set_congestion(int fd, const char *name) {
    return !setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, socklen_t(strlen(name)));
}

tp::Fd any_stream_socket(int family) {
    return tp::Fd(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// BBR paces, also inside of one host, where that takes half of the bandwidth. Linux goes on to pace
// a connection that began with BBR, whatever control it gets later. So none begins with it, and
// tune() gives it to those that leave the host.
tp::Fd stream_socket(int family) {
    tp::Fd fd = any_stream_socket(family);
    if (fd && congestion_of(fd.get()) == bbr) set_congestion(fd.get(), unpaced.name);
    return fd;
}

void set(int fd, int level, int name, int value) {
    setsockopt(fd, level, name, &value, sizeof value); // all of these options are optional
}

bool inside_one_host(int fd) {
    SocketAddress own, peer;
    socklen_t own_len = sizeof own, peer_len = sizeof peer;
    return !getsockname(fd, &own.any, &own_len) && !getpeername(fd, &peer.any, &peer_len) &&
           same_ip(own, peer);
}

} // namespace

dtrain_status_t listen_on(const tp::Host &host, SocketAddress *socket, tp::Fd *fd_p) {
    tp::Fd fd = stream_socket(socket->any.sa_family);
    socklen_t len = sizeof *socket;
    if (fd && socket->any.sa_family == AF_INET6) // IPv4 interfaces, too
        set(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, !IN6_IS_ADDR_UNSPECIFIED(&socket->six.sin6_addr));
    if (!fd || bind(fd.get(), &socket->any, length_of(*socket)) || listen(fd.get(), SOMAXCONN) ||
        getsockname(fd.get(), &socket->any, &len))
        return host.fail(DTRAIN_ERR_IO, "tcp: cannot listen on %s: %s", text_of(*socket).text,
                         strerror(errno));
    *fd_p = std::move(fd);
    return DTRAIN_OK;
}

int start_connect(const SocketAddress &peer, tp::Fd *fd_p) {
    tp::Fd fd = stream_socket(peer.any.sa_family);
    if (!fd) return -errno;
    if (connect(fd.get(), &peer.any, length_of(peer)) && errno != EINPROGRESS && errno != EINTR)
        return -errno;
    *fd_p = std::move(fd);
    return 0;
}

void notice_loss(int fd) {
    set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(fd, IPPROTO_TCP, TCP_KEEPIDLE, keep_idle_s);
    set(fd, IPPROTO_TCP, TCP_KEEPINTVL, keep_interval_s);
    set(fd, IPPROTO_TCP, TCP_KEEPCNT, keep_probes);
    set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, user_timeout_ms);
}

void tune(const tp::Host &host, int fd, const char *congestion) {
    set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    notice_loss(fd);
    if (!strcmp(congestion, "auto")) { // BBR where it is usual, but not inside of one host
        if (inside_one_host(fd) || congestion_of(fd) != unpaced) return;
        const tp::Fd fresh = any_stream_socket(AF_INET);
        if (!fresh || congestion_of(fresh.get()) != bbr) return;
        congestion = bbr.name;
    }
    if (!set_congestion(fd, congestion))
        host.log(DTRAIN_LOG_WARN,
                 "tcp: congestion control \"%s\" cannot be used here (%s); see "
                 "option tcp.congestion",
                 congestion, strerror(errno));
}

} // namespace dtrain::tcp
