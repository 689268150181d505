// Flow control of a connection: the most bytes of eager messages that each side keeps for the
// other. A receiver that takes a message frees room, and reports it in its next frame to the sender
// (credit).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "match.h"

#include <cstdint>
#include <utility>

namespace dtrain::tp {

class EagerWindow {
  public:
    explicit EagerWindow(uint64_t size) : size_(size), to_peer_(size), from_peer_(size) {}

    // Sending.
    bool has_room(uint64_t length) const { return cost(length) <= to_peer_; }
    void sent(uint64_t length) { to_peer_ -= cost(length); }
    // False: the peer returns more credit than was used.
    bool refill(uint32_t credit) { return (to_peer_ += credit) <= size_; }

    // Receiving. False: the peer sends more than it may.
    bool take(uint64_t length) {
        if (length > size_ || cost(length) > from_peer_) return false;
        from_peer_ -= cost(length);
        return true;
    }
    // The message is not kept any more. True: the peer should be told soon.
    bool give_back(uint64_t length) {
        due_ += cost(length);
        return due_ >= size_ / 2;
    }
    uint32_t due() const { return uint32_t(due_); }       // credit for the next frame,
    void told() { from_peer_ += std::exchange(due_, 0); } // which has taken it along

  private:
    static uint64_t cost(uint64_t length) { return length + Matcher::message_cost; }

    const uint64_t size_;
    uint64_t to_peer_;   // room at the peer
    uint64_t from_peer_; // bytes that the peer may still send
    uint64_t due_ = 0;   // room that the peer has not been told of yet
};

} // namespace dtrain::tp
