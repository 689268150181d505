// The two directions between two devices: a link for sending, a number for receiving.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/fd.h"
#include "common/guard.h"
#include "rdm/frame.h"

#include <memory>

namespace dtrain::rdm {

class Connection;
struct Handshake;

struct Channel {
    Link *link = nullptr;
    uint32_t number = 0, peer_number = 0; // our number for the channel, and the peer's
    uint64_t token = 0, peer_token = 0;
    uint32_t sent = 0, received = 0; // number of heads so far
    // The owner, which is one of these.
    Handshake *handshake = nullptr;
    Connection *connection = nullptr;
};

// The way to a peer after the handshake.
struct Route {
    std::unique_ptr<Channel> channel;
    tp::Fd process;  // the peer's, if it runs on this machine: its end is the peer's end
    tp::Guard guard; // protects the connection, if the two have agreed so
};

// Sends a head on the channel. `body` are further bytes of the head, which are copied; `payload`
// may be nullptr.
inline Sent send(Carrier &carrier, Channel &channel, Head head, const void *body, size_t body_len,
                 Operation *payload) {
    uint8_t bytes[max_head];
    head.to = channel.peer_number;
    head.token = channel.peer_token;
    head.sequence = channel.sent;
    head.encode(bytes);
    if (body_len) memcpy(bytes + Head::wire_length, body, body_len);
    const size_t len = Head::wire_length + body_len;
    const Sent result = head.kind == Kind::bulk
                            ? carrier.announce(channel.link, bytes, len, payload)
                            : carrier.send(channel.link, bytes, len, payload);
    if (result == Sent::now || result == Sent::later) channel.sent++;
    return result;
}

} // namespace dtrain::rdm
