// Keeps messages of one member and tag in order while the transport, a connection that is still
// being made, or a receive that looks in several places holds them back. SPDX-License-Identifier:
// Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace dtrain::engine {

// Under the agent's lock. Few wait at a time.
class MessageOrder {
  public:
    // Nobody else who was held back before has the same member and tag.
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
    // It has its place in the transport, or needs none any more.
    void release(const void *who) {
        if (!held_.empty()) std::erase_if(held_, [&](const Held &h) { return h.who == who; });
    }

  private:
    struct Held {
        uint32_t member;
        uint64_t tag;
        const void *who; // only compared
    };
    std::vector<Held> held_; // oldest first
};

} // namespace dtrain::engine
