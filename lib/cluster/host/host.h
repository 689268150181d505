// Identifies the host on which a process runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace dtrain::cluster {

// A text that is equal for two processes that can reach each other through the kernel alone (shared
// memory, abstract sockets): the running machine and the network namespace. At most wire::max_host
// bytes.
std::string host_identity();

} // namespace dtrain::cluster
