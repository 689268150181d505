// The operations in progress on a connection.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/match.h"
#include "protocol/endpoint.h"
#include "tcp/frame.h"

#include <memory>

namespace dtrain::tcp {

class Device;
class Connection;
using Endpoint = protocol::Endpoint<Device, Connection>;

struct Send { // a send() that was accepted and is not complete
    Endpoint *endpoint = nullptr;
    uint64_t tag = 0;
    uint64_t length = 0;
    uint64_t cookie = 0;
    uint32_t id = 0;      // its number for the peer, once announced
    uint32_t peer_id = 0; // the peer's number for its receive, once granted
    tp::IovCursor from;
    // The rest of the current frame, if the send was canceled (and reported as such) meanwhile.
    std::unique_ptr<uint8_t[]> orphan;
    tp::Link<Send> link;
};
using SendList = tp::List<Send, &Send::link>;

struct Transfer {                   // a receive whose data arrives after a grant
    tp::Receive *receive = nullptr; // nullptr: withdrawn, the data is dropped
    uint64_t tag = 0;
    uint64_t length = 0; // as sent
    uint64_t left = 0;   // granted bytes, not yet announced by a data frame
    uint32_t id = 0;
    uint32_t send_id = 0; // the sender's number for it
};

} // namespace dtrain::tcp
