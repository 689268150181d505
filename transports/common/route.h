// Describes the route to an address in words, for users who have chosen the wrong interface.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dtrain_basics.h"
#include "dtrain_transport.h"
#include "fd.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <ifaddrs.h>
#include <memory>
#include <netinet/in.h>
#include <string>

namespace dtrain::tp {

struct FreeInterfaces {
    void operator()(ifaddrs *all) const { freeifaddrs(all); }
};
using Interfaces = std::unique_ptr<ifaddrs, FreeInterfaces>;
inline Interfaces all_interfaces() {
    ifaddrs *all = nullptr;
    return Interfaces(getifaddrs(&all) ? nullptr : all);
}

inline socklen_t length_of(const sockaddr *address) {
    return address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

// The bytes of its IP address; nullptr if it is of another family.
inline const void *ip_of(const sockaddr *address) {
    if (address->sa_family == AF_INET)
        return &reinterpret_cast<const sockaddr_in *>(address)->sin_addr;
    if (address->sa_family == AF_INET6)
        return &reinterpret_cast<const sockaddr_in6 *>(address)->sin6_addr;
    return nullptr;
}

inline size_t ip_bytes(const sockaddr *address) { return address->sa_family == AF_INET ? 4 : 16; }

inline std::string ip_text(const sockaddr *address) {
    char text[INET6_ADDRSTRLEN] = "?";
    if (const void *ip = ip_of(address)) inet_ntop(address->sa_family, ip, text, sizeof text);
    return text;
}

inline bool same_ip(const sockaddr *a, const sockaddr *b) {
    return a->sa_family == b->sa_family && ip_of(a) && !memcmp(ip_of(a), ip_of(b), ip_bytes(a));
}

// The interface of this host that has this IP address; "" if none has.
inline std::string interface_of(const sockaddr *address) {
    const Interfaces all = all_interfaces();
    for (const ifaddrs *i = all.get(); i; i = i->ifa_next)
        if (i->ifa_addr && same_ip(i->ifa_addr, address)) return i->ifa_name;
    return "";
}

// The network of one of this host's addresses: "10.0.0.0/24"; "" if the host does not have the
// address.
inline std::string network_text(const sockaddr *own) {
    const Interfaces all = all_interfaces();
    for (const ifaddrs *i = all.get(); i; i = i->ifa_next) {
        if (!i->ifa_addr || !i->ifa_netmask || !same_ip(i->ifa_addr, own)) continue;
        sockaddr_storage network{};
        memcpy(&network, own, length_of(own));
        auto *any = reinterpret_cast<sockaddr *>(&network);
        auto *bytes = static_cast<uint8_t *>(const_cast<void *>(ip_of(any)));
        const auto *mask = static_cast<const uint8_t *>(ip_of(i->ifa_netmask));
        int bits = 0;
        for (size_t n = 0; mask && n < ip_bytes(own); n++) {
            bytes[n] &= mask[n];
            bits += __builtin_popcount(mask[n]);
        }
        return ip_text(any) + "/" + std::to_string(bits);
    }
    return "";
}

// "10.0.0.4 (eth0)"
inline std::string own_text(const sockaddr *own) {
    const std::string name = interface_of(own);
    return ip_text(own) + (name.empty() ? "" : " (" + name + ")");
}

// The interface from which the kernel would send packets to this address: ", packets leave by
// 10.0.0.4 (eth0)".
inline std::string departure_text(const sockaddr *peer) {
    const Fd fd(socket(peer->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    union {
        sockaddr any;
        sockaddr_storage storage;
    } own{};
    socklen_t len = sizeof own;
    if (!fd) // then the route is unknown
        return std::string(" (") + strerror(errno) +
               (errno == EMFILE || errno == ENFILE ? "; raise the limit on open files, ulimit -n)"
                                                   : ")");
    if (connect(fd.get(), peer, length_of(peer))) // on a datagram socket this sends nothing
        return std::string(", to which the kernel has no route (") + strerror(errno) + ")";
    if (getsockname(fd.get(), &own.any, &len)) return "";
    return ", packets leave by " + own_text(&own.any);
}

// `option` is the option that chooses the interfaces.
inline std::string route_text(const sockaddr *own, const sockaddr *peer, const char *option) {
    return "from " + own_text(own) + " to " + ip_text(peer) + departure_text(peer) + "; option " +
           option + " chooses another interface";
}

// Two hosts may have the same address on separate networks (docker0); then it does not lead to the
// peer.
inline bool is_own_address(const sockaddr *peer) { return !interface_of(peer).empty(); }

// Writes the answer of dtrain_tp_ops_t::route().
inline dtrain_status_t answer_text(const std::string &answer, char *text, size_t len) {
    if (len) text[answer.copy(text, len - 1)] = 0;
    return DTRAIN_OK;
}

} // namespace dtrain::tp
