// The addresses of this host.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cluster/host/socket.h"

#include <string>
#include <vector>

namespace dtrain::cluster {

// Numeric ones by which other hosts may reach this one: those that packets to the rest of the world
// would leave by first, then the others of IPv4 and of IPv6. None of the loopback, and no
// link-local ones, which mean nothing elsewhere.
std::vector<std::string> own_addresses();

} // namespace dtrain::cluster
