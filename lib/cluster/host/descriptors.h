// Whether this process may open as many file descriptors as its part in a job takes.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/log.h"
#include "base/status.h"
#include "cluster/host/identity.h"

#include <cstdint>

namespace dtrain::cluster {

// Beside those that are open already: what every call needs that goes by trees, and what calls need
// in which everybody sends to everybody. At most two for each connection to a peer.
struct DescriptorNeed {
    uint64_t least = 0, most = 0;

    static DescriptorNeed of(const Identity &identity);
};

// What is open, and how many may be (ulimit -n).
struct DescriptorRoom {
    uint64_t open = 0, limit = 0, hard_limit = 0;

    static DescriptorRoom now();
};

// DTRAIN_ERR_LIMIT when there is not even room for the least. The coordinator warns when calls
// might fail later.
Status check_descriptors(const Identity &identity, const DescriptorRoom &room, Log &log);

} // namespace dtrain::cluster
