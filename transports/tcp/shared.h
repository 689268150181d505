// State that all connections of a device share.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/completions.h"
#include "common/host.h"
#include "common/match.h"
#include "tcp/frame.h"
#include "tcp/poller.h"
#include "tcp/transfer.h"

namespace dtrain::tcp {

struct Shared {
    // The matcher is unlimited: each connection's window bounds what it can make us keep.
    explicit Shared(const dtrain_tp_host_t *table) : host(table), matcher(UINT64_MAX) {}

    const tp::Host host;
    Poller poller;
    tp::Matcher matcher;
    tp::Completions completions;
    tp::Pool<Send> sends;
    tp::Pool<Transfer> transfers;
    uint64_t eager_limit = tcp::eager_limit;
    bool attention = false;      // progress() has work that no descriptor signals
    bool stale_interest = false; // a connection's update_interest() must be called
    // Headers and small payloads pass through this buffer. Of a large payload at most this much is
    // copied once more; the rest goes straight to its place.
    uint8_t scratch[16 << 10];
};

} // namespace dtrain::tcp
