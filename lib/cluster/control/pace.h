// How patient the members of a job are with each other's silence.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cluster/control/protocol.h"

#include <cstdint>
#include <span>
#include <string>

namespace dtrain::cluster {

struct Pace {
    int64_t interval = 0, timeout = 0; // of heartbeats; ns
    // How soon after one the others of a job have mostly left, too.
    int64_t leaving = 0;

    // What the options say, longer where many members share a core: each runs more rarely there.
    // Members with the same options find the same.
    static Pace of(const Settings &settings, std::span<const wire::Peer> peers);
    // "silent for 5003 ms (option heartbeat.timeout: 5000 ms)"
    std::string silence(int64_t ns) const;
};

} // namespace dtrain::cluster
