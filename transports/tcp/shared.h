// State that all connections of a device share.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/guard.h"
#include "common/pool.h"
#include "protocol/shared.h"
#include "tcp/frame.h"
#include "tcp/poller.h"
#include "tcp/transfer.h"

namespace dtrain::tcp {

inline constexpr char transport_name[] = "tcp";

// The way to a peer, once both sides trust each other.
struct Route {
    tp::Fd fd;
    tp::Guard guard;
};

struct Shared : protocol::Shared {
    using protocol::Shared::Shared;

    Poller poller;
    tp::Pool<Send> sends;
    tp::Pool<Transfer> transfers;
    bool stale_interest = false; // a connection's update_interest() must be called
    // Headers and small payloads pass through this buffer. Of a large payload at most this much is
    // copied once more; the rest goes straight to its place.
    uint8_t scratch[16 << 10];
};

} // namespace dtrain::tcp
