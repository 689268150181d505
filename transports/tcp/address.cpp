// Where a device listens, as it travels to its peers.
// SPDX-License-Identifier: Apache-2.0
#include "tcp/address.h"
#include "common/route.h"

#include <arpa/inet.h>
#include <cstdio>
#include <cstring>
#include <endian.h>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>

namespace dtrain::tcp {
namespace {

constexpr uint8_t wire_version = 1;

struct Wire { // integers little-endian, ip and port in network order
    DeviceId id;
    uint64_t host;
    uint8_t ip[16];
    uint32_t scope;
    uint16_t port;
    uint8_t family; // 4 or 6
    uint8_t version;
};
static_assert(sizeof(Wire) == Address::wire_length);

const sockaddr_in &v4(const SocketAddress &socket) {
    return reinterpret_cast<const sockaddr_in &>(socket.storage);
}
const sockaddr_in6 &v6(const SocketAddress &socket) {
    return reinterpret_cast<const sockaddr_in6 &>(socket.storage);
}

bool wildcard(const SocketAddress &socket) {
    if (socket.any.sa_family == AF_INET) return v4(socket).sin_addr.s_addr == INADDR_ANY;
    return IN6_IS_ADDR_UNSPECIFIED(&v6(socket).sin6_addr);
}

void assign(SocketAddress *socket, const sockaddr *address) {
    *socket = {};
    socket->any.sa_family = address->sa_family;
    memcpy(&socket->storage, address, length_of(*socket));
}

// IPv4 before IPv6 before link-local IPv6.
int preference(const sockaddr *address) {
    if (!address) return 0;
    if (address->sa_family == AF_INET) return 3;
    if (address->sa_family != AF_INET6) return 0;
    const auto *six = reinterpret_cast<const sockaddr_in6 *>(address);
    return IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr) ? 1 : 2;
}

bool find_interface(const char *name, SocketAddress *socket_p) {
    const tp::Interfaces all = tp::all_interfaces();
    int best = 0;
    for (const ifaddrs *i = all.get(); i; i = i->ifa_next)
        if (!strcmp(i->ifa_name, name) && preference(i->ifa_addr) > best) {
            best = preference(i->ifa_addr);
            assign(socket_p, i->ifa_addr);
        }
    return best > 0;
}

} // namespace

void Address::encode(uint8_t out[wire_length]) const {
    Wire wire{};
    wire.id = id;
    wire.host = htole64(host);
    wire.version = wire_version;
    if (socket.any.sa_family == AF_INET) {
        wire.family = 4;
        wire.port = v4(socket).sin_port;
        memcpy(wire.ip, &v4(socket).sin_addr, 4);
    } else {
        wire.family = 6;
        wire.port = v6(socket).sin6_port;
        wire.scope = htole32(v6(socket).sin6_scope_id);
        memcpy(wire.ip, &v6(socket).sin6_addr, 16);
    }
    memcpy(out, &wire, sizeof wire);
}

bool Address::decode(const void *bytes, size_t len) {
    Wire wire;
    if (len != sizeof wire) return false;
    memcpy(&wire, bytes, sizeof wire);
    if (wire.version != wire_version || !wire.port || (wire.family != 4 && wire.family != 6))
        return false;
    id = wire.id;
    host = le64toh(wire.host);
    socket = {};
    if (wire.family == 4) {
        auto &four = reinterpret_cast<sockaddr_in &>(socket.storage);
        four.sin_family = AF_INET;
        four.sin_port = wire.port;
        memcpy(&four.sin_addr, wire.ip, 4);
    } else {
        auto &six = reinterpret_cast<sockaddr_in6 &>(socket.storage);
        six.sin6_family = AF_INET6;
        six.sin6_port = wire.port;
        six.sin6_scope_id = le32toh(wire.scope);
        memcpy(&six.sin6_addr, wire.ip, 16);
    }
    return !wildcard(socket);
}

bool Address::loopback() const {
    if (socket.any.sa_family == AF_INET)
        return (ntohl(v4(socket).sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
    return IN6_IS_ADDR_LOOPBACK(&v6(socket).sin6_addr);
}

dtrain_status_t resolve_local(const tp::Host &host, const char *spec, SocketAddress *socket_p) {
    if (!find_interface(spec, socket_p)) {
        addrinfo hints{}, *found;
        hints.ai_socktype = SOCK_STREAM;
        if (const int error = getaddrinfo(spec, nullptr, &hints, &found))
            return host.fail(DTRAIN_ERR_CONFIG,
                             "tcp: \"%s\" is neither an interface nor an address of this host (%s)",
                             spec, gai_strerror(error));
        assign(socket_p, found->ai_addr);
        freeaddrinfo(found);
    }
    if (wildcard(*socket_p))
        return host.fail(DTRAIN_ERR_CONFIG,
                         "tcp: \"%s\" is every interface; name the one that peers can reach", spec);
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
        snprintf(out.text, sizeof out.text, "%s:%u", ip.c_str(), ntohs(v4(socket).sin_port));
    else
        snprintf(out.text, sizeof out.text, "[%s]:%u", ip.c_str(), ntohs(v6(socket).sin6_port));
    return out;
}

} // namespace dtrain::tcp
