// How long the members of a job tolerate each other's silence.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cluster/control/protocol.h"

#include <cstdint>
#include <span>
#include <string>

namespace dtrain::cluster {

struct Pace {
    int64_t interval = 0, timeout = 0; // of heartbeats, in ns
    // Time within which the other members have mostly left, too, after one has left.
    int64_t leaving = 0;

    // The values of the options, longer where many members share a core, since each runs less often
    // there. Members with the same options compute the same values.
    static Pace of(const Settings &settings, std::span<const wire::Peer> peers);
    // A joining process does not know how crowded the hosts are, so it is as patient as any pace.
    static Pace of_joining(const Settings &settings);
    // "silent for 5003 ms (option heartbeat.timeout: 5000 ms)"
    std::string silence(int64_t ns) const;
};

} // namespace dtrain::cluster
