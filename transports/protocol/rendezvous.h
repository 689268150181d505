// The messages of a connection that are announced: they stay with their sender until the receiver
// has a place for them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/id_table.h"
#include "protocol/receives.h"

namespace dtrain::protocol {

inline constexpr uint32_t announce_limit = 8192; // per connection and direction

// Bounds their number in each direction, and numbers those of this side: Send has `uint32_t id`.
template <class Send> class Rendezvous {
  public:
    // Sending. False: too many are announced, or no memory; try again when one of them has ended.
    bool announce(Send *send) {
        return announced_.size() < announce_limit && announced_.insert(send, &send->id);
    }
    // nullptr: it has ended. The number comes from the peer.
    Send *find(uint32_t id) const { return announced_.find(id); }
    template <class Condition> Send *find_if(Condition &&condition) const {
        return announced_.find_if(condition);
    }
    void end(const Send *send) { announced_.remove(send->id); }

    // Receiving. False: the peer announces more than it may.
    bool may_announce() const { return kept_ < announce_limit; }
    // Keeps an announcement for a later receive. nullptr: no memory.
    tp::Message *keep(Receives &receives, uint64_t tag, uint64_t length, uint32_t id,
                      void *origin) {
        tp::Message *message = receives.announce(tag, length, id, origin);
        if (message) kept_++;
        return message;
    }
    void taken() { kept_--; } // a kept one, by a receive or by purge(), or its sender withdraws it

  private:
    tp::IdTable<Send> announced_;
    uint32_t kept_ = 0;
};

} // namespace dtrain::protocol
