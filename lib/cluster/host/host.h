// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace dtrain::cluster {

// The same for two processes if they can reach each other through the kernel alone (shared memory,
// abstract sockets): the running machine and the network namespace. At most wire::max_host bytes.
std::string host_identity();

} // namespace dtrain::cluster
