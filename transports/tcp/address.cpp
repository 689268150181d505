// The addresses at which a device listens, in the form that is sent to its peers.
// SPDX-License-Identifier: Apache-2.0
#include "tcp/address.h"
#include "common/names.h"
#include "common/route.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <endian.h>
#include <memory>
#include <net/if.h>
#include <netdb.h>

namespace dtrain::tcp {
namespace {

constexpr uint8_t wire_version = 2;
constexpr int64_t resolver_patience_ns = 10'000'000'000;

struct WireSocket { // integers little-endian, ip in network order
    uint8_t ip[16];
    uint32_t scope;
    uint8_t family; // 4 or 6
    uint8_t zero[3];
};
struct Wire {
    DeviceId id;
    uint64_t host;
    uint16_t port; // in network order
    uint8_t count;
    uint8_t version;
    uint8_t zero[4];
    WireSocket sockets[Address::most];
};
static_assert(sizeof(Wire) == Address::wire_length);

bool wildcard(const SocketAddress &socket) {
    if (socket.any.sa_family == AF_INET) return socket.four.sin_addr.s_addr == INADDR_ANY;
    return IN6_IS_ADDR_UNSPECIFIED(&socket.six.sin6_addr);
}

void assign(SocketAddress *socket, const sockaddr *address) {
    *socket = {};
    socket->any.sa_family = address->sa_family;
    memcpy(static_cast<void *>(socket), address, length_of(*socket));
}

// Ranks IPv4 before IPv6 before link-local IPv6.
int preference(const sockaddr *address) {
    if (!address) return 0;
    if (address->sa_family == AF_INET) return 3;
    if (address->sa_family != AF_INET6) return 0;
    const auto *six = reinterpret_cast<const sockaddr_in6 *>(address);
    return IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr) ? 1 : 2;
}

bool find_interface(const tp::Interfaces &all, const char *name, SocketAddress *socket_p) {
    int best = 0;
    for (const ifaddrs *i = all.get(); i; i = i->ifa_next)
        if (!strcmp(i->ifa_name, name) && preference(i->ifa_addr) > best) {
            best = preference(i->ifa_addr);
            assign(socket_p, i->ifa_addr);
        }
    return best > 0;
}

} // namespace

void Address::add(const SocketAddress &socket) {
    for (uint32_t i = 0; i < count; i++)
        if (same_ip(sockets[i], socket)) return;
    if (count < most) sockets[count++] = socket;
}

void Address::set_port(in_port_t port) {
    for (uint32_t i = 0; i < count; i++)
        (sockets[i].any.sa_family == AF_INET ? sockets[i].four.sin_port
                                             : sockets[i].six.sin6_port) = port;
}

void Address::encode(uint8_t out[wire_length]) const {
    Wire wire{};
    wire.id = id;
    wire.host = htole64(host);
    wire.version = wire_version;
    wire.port = port_of(sockets[0]);
    wire.count = uint8_t(count);
    for (uint32_t i = 0; i < count; i++) {
        const bool four = sockets[i].any.sa_family == AF_INET;
        wire.sockets[i].family = four ? 4 : 6;
        if (four) {
            memcpy(wire.sockets[i].ip, &sockets[i].four.sin_addr, 4);
        } else {
            wire.sockets[i].scope = htole32(sockets[i].six.sin6_scope_id);
            memcpy(wire.sockets[i].ip, &sockets[i].six.sin6_addr, 16);
        }
    }
    memcpy(out, &wire, sizeof wire);
}

bool Address::decode(const void *bytes, size_t len) {
    Wire wire;
    if (len != sizeof wire) return false;
    memcpy(&wire, bytes, sizeof wire);
    if (wire.version != wire_version || !wire.port || !wire.count || wire.count > most)
        return false;
    id = wire.id;
    host = le64toh(wire.host);
    count = 0;
    for (uint32_t i = 0; i < wire.count; i++) {
        const WireSocket &from = wire.sockets[i];
        SocketAddress socket{};
        if (from.family == 4) {
            socket.four.sin_family = AF_INET;
            memcpy(&socket.four.sin_addr, from.ip, 4);
        } else if (from.family == 6) {
            socket.six.sin6_family = AF_INET6;
            socket.six.sin6_scope_id = le32toh(from.scope);
            memcpy(&socket.six.sin6_addr, from.ip, 16);
        } else {
            return false;
        }
        if (wildcard(socket)) return false;
        add(socket);
    }
    set_port(wire.port);
    return true;
}

SocketAddress everywhere(sa_family_t family) {
    SocketAddress socket{}; // all zero: all addresses, any port
    socket.any.sa_family = family;
    return socket;
}

bool is_loopback(const SocketAddress &socket) {
    if (socket.any.sa_family == AF_INET)
        return (ntohl(socket.four.sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
    return IN6_IS_ADDR_LOOPBACK(&socket.six.sin6_addr);
}

in_port_t port_of(const SocketAddress &socket) {
    return socket.any.sa_family == AF_INET ? socket.four.sin_port : socket.six.sin6_port;
}

void add_own(Address *address) {
    const tp::Interfaces all = tp::all_interfaces();
    for (const int best : {3, 2}) // values of preference()
        for (const ifaddrs *i = all.get(); i; i = i->ifa_next) {
            if (preference(i->ifa_addr) != best || !(i->ifa_flags & IFF_UP) ||
                (i->ifa_flags & IFF_LOOPBACK))
                continue;
            SocketAddress socket;
            assign(&socket, i->ifa_addr);
            address->add(socket);
        }
}

dtrain_status_t resolve_local(const tp::Host &host, const char *spec, SocketAddress *socket_p) {
    errno = 0;
    const tp::Interfaces all = tp::all_interfaces();
    if (!all && errno == ENOMEM) // other errors: a sandbox may forbid it
        return host.fail(DTRAIN_ERR_NO_MEMORY, "tcp: no memory for the list of interfaces");
    if (!find_interface(all, spec, socket_p)) {
        addrinfo hints{}, *found;
        hints.ai_socktype = SOCK_STREAM;
        const int error = tp::find_addresses(spec, nullptr, hints,
                                             tp::resolver_now_ns() + resolver_patience_ns, &found);
        if (error == EAI_INPROGRESS)
            return host.fail(
                DTRAIN_ERR_TIMEOUT,
                "tcp: \"%s\" is not an interface, and the resolver has not answered within %d s; "
                "give the interface or a numeric address",
                spec, int(resolver_patience_ns / 1'000'000'000));
        if (error)
            return host.fail(error == EAI_MEMORY ? DTRAIN_ERR_NO_MEMORY : DTRAIN_ERR_CONFIG,
                             "tcp: \"%s\" is neither an interface nor an address of this host (%s)",
                             spec, gai_strerror(error));
        assign(socket_p, found->ai_addr);
        freeaddrinfo(found);
    }
    if (wildcard(*socket_p))
        return host.fail(DTRAIN_ERR_CONFIG,
                         "tcp: \"%s\" means all interfaces; name the one that peers can reach",
                         spec);
    return DTRAIN_OK;
}

socklen_t length_of(const SocketAddress &socket) {
    return socket.any.sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

bool same_ip(const SocketAddress &a, const SocketAddress &b) { return tp::same_ip(&a.any, &b.any); }

AddressText text_of(const SocketAddress &socket) {
    const std::string ip = tp::ip_text(&socket.any);
    AddressText out;
    if (socket.any.sa_family == AF_INET)
        snprintf(out.text, sizeof out.text, "%s:%u", ip.c_str(), ntohs(port_of(socket)));
    else
        snprintf(out.text, sizeof out.text, "[%s]:%u", ip.c_str(), ntohs(port_of(socket)));
    return out;
}

} // namespace dtrain::tcp
