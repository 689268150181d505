// Checks whether this process may open as many file descriptors as its part in a job takes.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/log.h"
#include "base/status.h"
#include "cluster/host/identity.h"

#include <cstdint>

namespace dtrain::cluster {

// Descriptors needed besides those already open. least: for what every call needs that goes by
// trees; most: for calls in which all ranks send to all. At most two per connection to a peer.
struct DescriptorNeed {
    uint64_t least = 0, most = 0;

    static DescriptorNeed of(const Identity &identity);
};

// How many descriptors are open, and how many may be (ulimit -n).
struct DescriptorRoom {
    uint64_t open = 0, limit = 0, hard_limit = 0;

    static DescriptorRoom now();
};

// DTRAIN_ERR_LIMIT if there is not even room for the least. The coordinator warns if calls might
// fail later.
Status check_descriptors(const Identity &identity, const DescriptorRoom &room, Log &log);

} // namespace dtrain::cluster
