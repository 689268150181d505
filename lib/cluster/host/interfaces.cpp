// Lists the addresses of this host, best first.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/host/interfaces.h"

#include "base/fd.h"

#include <algorithm>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netinet/in.h>

namespace dtrain::cluster {
namespace {

bool is_link_local(const sockaddr *address) {
    if (address->sa_family == AF_INET)
        return ntohl(reinterpret_cast<const sockaddr_in *>(address)->sin_addr.s_addr) >> 16 ==
               0xa9fe; // 169.254
    return IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6 *>(address)->sin6_addr);
}

void add(std::vector<std::string> &all, const std::string &one) {
    if (!one.empty() && std::ranges::find(all, one) == all.end()) all.push_back(one);
}

} // namespace

std::vector<std::string> own_addresses() {
    std::vector<std::string> out;
    std::vector<SocketAddress> there;
    // Documentation addresses: RFC 5737, RFC 3849.
    for (const char *abroad : {"192.0.2.1", "2001:db8::1"})
        if (resolve_numeric({abroad, "9"}, there) == DTRAIN_OK)
            add(out, local_address_towards(there));
    ifaddrs *list = nullptr;
    const StandardDescriptors occupied;
    if (getifaddrs(&list) != 0) return out;
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs *)> owner(list, freeifaddrs);
    for (int family : {AF_INET, AF_INET6})
        for (const ifaddrs *at = list; at != nullptr; at = at->ifa_next) {
            if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != family ||
                (at->ifa_flags & IFF_UP) == 0 || (at->ifa_flags & IFF_LOOPBACK) != 0 ||
                is_link_local(at->ifa_addr))
                continue;
            add(out, numeric_host(*at->ifa_addr));
        }
    return out;
}

} // namespace dtrain::cluster
