// Asks the kernel for the round trips that it has seen.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/host/socket.h"

#include "base/clock.h"

#include <cstddef>
#include <linux/tcp.h> // netinet/tcp.h has no tcpi_min_rtt
#include <netinet/in.h>

namespace dtrain::cluster {

int64_t round_trip_ns(int fd) {
    tcp_info info{};
    socklen_t length = sizeof info;
    constexpr size_t needed = offsetof(tcp_info, tcpi_min_rtt) + sizeof info.tcpi_min_rtt;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 || length < needed) return 0;
    return info.tcpi_min_rtt == UINT32_MAX ? 0 : info.tcpi_min_rtt * us; // MAX: none was seen
}

} // namespace dtrain::cluster
