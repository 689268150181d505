// The network addresses of this host.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cluster/host/socket.h"

#include <string>
#include <vector>

namespace dtrain::cluster {

// Numeric addresses by which other hosts may reach this one: first those from which packets to the
// rest of the world would leave, then the others of IPv4 and of IPv6. No loopback addresses, and no
// link-local ones, which mean nothing on other hosts.
std::vector<std::string> own_addresses();

} // namespace dtrain::cluster
