// The addresses at which a device listens, in the form that is sent to its peers.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/hello.h"

#include <cstddef>
#include <cstdint>
#include <netinet/in.h>

namespace dtrain::tcp {

using tp::DeviceId;

union SocketAddress {
    sockaddr any;
    sockaddr_in four;
    sockaddr_in6 six;
};

struct Address {
    static constexpr uint32_t most = 4; // sockets
    static constexpr size_t wire_length = 128;

    DeviceId id{};
    uint64_t host = 0;             // fingerprint of the machine and its network namespace
    SocketAddress sockets[most]{}; // where it may be reached, best first; all with one port
    uint32_t count = 0;

    void add(const SocketAddress &socket); // ignored if it is present or there is no room
    void set_port(in_port_t port);         // of all sockets; in network order
    void encode(uint8_t out[wire_length]) const;
    // False if the bytes (which come from a peer) are not an address.
    bool decode(const void *bytes, size_t len);
};

// Finds the socket address (port 0) of an interface, or of an address or name of this host.
dtrain_status_t resolve_local(const tp::Host &host, const char *spec, SocketAddress *socket_p);
// Adds this host's addresses that are meaningful to other hosts: IPv4 before IPv6.
void add_own(Address *address);

SocketAddress everywhere(sa_family_t family); // all interfaces, port 0
bool is_loopback(const SocketAddress &socket);
in_port_t port_of(const SocketAddress &socket); // in network order
socklen_t length_of(const SocketAddress &socket);
bool same_ip(const SocketAddress &a, const SocketAddress &b);
// "10.0.0.4:7001"
struct AddressText {
    char text[64];
};
AddressText text_of(const SocketAddress &socket);

} // namespace dtrain::tcp
