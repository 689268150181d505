// The core's services for the devices and connections that transports' targets drive.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tests/fuzz/fuzz.h"

#include "transport/host.h"

namespace dtrain::fuzz {

struct StoppedClock final : Clock {
    int64_t now_ns() override { return now; }
    int64_t now = 0;
};

struct HostServices {
    explicit HostServices(const Secret &secret = {},
                          protection::Level demand = protection::Level::none)
        : host(options, log, clock, secret, demand) {
        log.set_sink([](void *, int32_t, const char *) {}, nullptr); // lines are made, not shown
    }
    const dtrain_tp_host_t *table() const { return host.table(); }

    Options options;
    Log log;
    StoppedClock clock;
    transport::Host host;
};

} // namespace dtrain::fuzz
