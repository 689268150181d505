// Answers of a server to requests, and the form in which they are sent.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/server/peer_memory.h"
#include "ps/storage/delivery.h"
#include "ps/table/buffer.h"
#include "ps/table/protocol.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace dtrain::ps {

// The outcome of a request; numbers: as in ResponseHeader.
struct Answer {
    Reason reason = Reason::none;
    uint64_t numbers[2] = {0, 0};
};

// An answer that the server sends. payload belongs to `hold`, which must be kept until it was sent.
struct Response {
    uint32_t worker = 0;
    ResponseHeader header;
    const void *payload = nullptr;
    uint64_t bytes = 0;
    std::shared_ptr<const Buffer> hold;
    Charge charge;                                // for hold, unless it is memory of the shard
    bool packed = false;                          // sent in a pack with others
    std::shared_ptr<Delivery> delivery = nullptr; // if the payload may be still to come

    // Whether it can be sent: the payload has come, or never will, which is its answer then.
    bool is_ready() {
        if (delivery == nullptr) [[likely]]
            return true;
        const Delivery::State state = delivery->look();
        if (state == Delivery::State::coming) return false;
        if (state == Delivery::State::failed) {
            header.reason = Reason::device;
            header.count = bytes = 0;
            payload = nullptr;
            hold.reset();
            charge = {};
        }
        delivery.reset();
        return true;
    }
};
using Responses = std::vector<Response>; // reused between steps to avoid allocations

} // namespace dtrain::ps
