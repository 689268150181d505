// Flow control of a connection: how many bytes of eager messages each side keeps for the other at
// most. Who takes a message frees room, which the next frame to its sender tells (credit).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "match.h"

#include <cstdint>
#include <utility>

namespace dtrain::tp {

class EagerWindow {
  public:
    explicit EagerWindow(uint64_t size) : size_(size), to_peer_(size), from_peer_(size) {}

    // What goes out.
    bool has_room(uint64_t length) const { return cost(length) <= to_peer_; }
    void sent(uint64_t length) { to_peer_ -= cost(length); }
    // False: the peer gives back more than was used.
    bool refill(uint32_t credit) { return (to_peer_ += credit) <= size_; }

    // What comes in. False: the peer sends more than it may.
    bool take(uint64_t length) {
        if (length > size_ || cost(length) > from_peer_) return false;
        from_peer_ -= cost(length);
        return true;
    }
    // Nothing is kept of the message any more. True: the peer should hear of it soon.
    bool give_back(uint64_t length) {
        due_ += cost(length);
        return due_ >= size_ / 2;
    }
    uint32_t due() const { return uint32_t(due_); }       // for the next frame,
    void told() { from_peer_ += std::exchange(due_, 0); } // which took it along

  private:
    static uint64_t cost(uint64_t length) { return length + Matcher::message_cost; }

    const uint64_t size_;
    uint64_t to_peer_;   // what the peer has room for
    uint64_t from_peer_; // what the peer may still send
    uint64_t due_ = 0;   // what the peer does not know yet that there is room for
};

} // namespace dtrain::tp
