// Whether anything can be between the two ends of a connection.
// SPDX-License-Identifier: Apache-2.0
#include "tcp/path.h"

#include "common/machine.h"
#include "common/route.h"
#include "tcp/address.h"

#include <cstring>
#include <sys/socket.h>

namespace dtrain::tcp {
namespace {

// A socket that listens to both IPv4 and IPv6 has IPv4 addresses in the form of IPv6.
SocketAddress plain(const SocketAddress &socket) {
    if (socket.any.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&socket.six.sin6_addr))
        return socket;
    SocketAddress four{};
    four.four.sin_family = AF_INET;
    four.four.sin_port = socket.six.sin6_port;
    memcpy(&four.four.sin_addr, &socket.six.sin6_addr.s6_addr[12], 4);
    return four;
}

struct End {
    uint8_t ip[16]{};
    in_port_t port = 0;

    explicit End(const SocketAddress &socket) : port(port_of(socket)) {
        if (socket.any.sa_family == AF_INET6)
            memcpy(ip, &socket.six.sin6_addr, sizeof ip);
        else
            memcpy(ip, &socket.four.sin_addr, 4);
    }
};

} // namespace

tp::Path path_of(const tp::Host &host, int fd, tp::Role role) {
    SocketAddress own{}, peer{};
    socklen_t own_len = sizeof own, peer_len = sizeof peer;
    if (getsockname(fd, &own.any, &own_len) || getpeername(fd, &peer.any, &peer_len)) return {};
    own = plain(own);
    peer = plain(peer);
    const tp::BootId boot;
    if (*boot.text == 0 || !tp::is_own_address(&peer.any)) return {};
    const bool first = role == tp::Role::initiator;
    const struct {
        char label[16];
        uint64_t network; // of this kernel
        tp::BootId kernel;
        End initiator, responder;
        uint8_t zero[4];
    } text{"dtrain tcp path",       tp::machine_fingerprint("net"), boot,
           End(first ? own : peer), End(first ? peer : own),        {}};
    static_assert(sizeof text == 16 + 8 + 64 + 2 * 18 + 4);
    uint8_t mac[32];
    tp::Path path{};
    if (host.sign(&text, sizeof text, mac) == DTRAIN_OK) memcpy(path.data(), mac, path.size());
    return path;
}

} // namespace dtrain::tcp
