// Options of the simulated network.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/host.h"

#include <cstdint>

namespace dtrain::tp::sim {

// Option plugin.sim.<name of the member>; "network" is text, the others are whole numbers.
struct Settings {
    char network[64] = "default";
    uint64_t seed = 1;
    uint64_t latency = 1000;    // ns
    uint64_t jitter = 0;        // ns; a random part of it is added to the latency
    uint64_t bandwidth = 0;     // bytes per second that one device sends; 0: no limit
    uint64_t eager = 64 << 10;  // bytes: longer messages wait for their receive
    uint64_t buffer = 4u << 20; // bytes that a device keeps of messages for which no receive waits

    bool operator==(const Settings &) const = default;
};

dtrain_status_t read_settings(const Host &host, Settings &settings);

} // namespace dtrain::tp::sim
