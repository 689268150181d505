// Where a device listens, as it travels to its peers.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/hello.h"

#include <cstddef>
#include <cstdint>
#include <sys/socket.h>

namespace dtrain::tcp {

using tp::DeviceId;

union SocketAddress {
    sockaddr any;
    sockaddr_storage storage;
};

struct Address {
    static constexpr size_t wire_length = 48;

    DeviceId id{};
    uint64_t host = 0; // fingerprint of the machine and its network namespace
    SocketAddress socket{};

    void encode(uint8_t out[wire_length]) const;
    // False when the bytes (which come from a peer) are no address.
    bool decode(const void *bytes, size_t len);
    bool loopback() const;
};

// Finds the socket address (port 0) of an interface, or of an address or name of this host.
dtrain_status_t resolve_local(const tp::Host &host, const char *spec, SocketAddress *socket_p);

socklen_t length_of(const SocketAddress &socket);
bool same_ip(const SocketAddress &a, const SocketAddress &b);
// "10.0.0.4:7001"
struct AddressText {
    char text[64];
};
AddressText text_of(const SocketAddress &socket);

} // namespace dtrain::tcp
