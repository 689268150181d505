// Keeps messages of one member and tag in order while something holds them back: the transport, a
// connection that is still being made, or a receive that searches several places.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace dtrain::engine {

// Used under the agent's lock. Few messages are held back at a time.
class MessageOrder {
  public:
    // Whether no other message of this member and tag was held back earlier.
    bool is_next(uint32_t member, uint64_t tag, const void *who) const {
        if (held_.empty()) return true;
        auto same = [&](const Held &h) { return h.member == member && h.tag == tag; };
        auto first = std::find_if(held_.begin(), held_.end(), same);
        return first == held_.end() || first->who == who;
    }
    void hold(uint32_t member, uint64_t tag, const void *who) {
        auto its = [&](const Held &h) { return h.who == who; };
        if (std::none_of(held_.begin(), held_.end(), its)) held_.push_back({member, tag, who});
    }
    // The message has its place in the transport, or needs none any more.
    void release(const void *who) {
        if (!held_.empty()) std::erase_if(held_, [&](const Held &h) { return h.who == who; });
    }

  private:
    struct Held {
        uint32_t member;
        uint64_t tag;
        const void *who; // only compared, never dereferenced
    };
    std::vector<Held> held_; // oldest first
};

} // namespace dtrain::engine
