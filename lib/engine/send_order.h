// Keeps messages of one receiver and tag in order while the transport, or a connection that is
// still being made, holds them back. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace dtrain::engine {

// Under the agent's lock. Few wait at a time.
class SendOrder {
  public:
    // Nobody who was held back before has the same receiver and tag.
    bool is_next(uint32_t member, uint64_t tag, const void *sender) const {
        auto same = [&](const Held &h) { return h.member == member && h.tag == tag; };
        auto first = std::find_if(held_.begin(), held_.end(), same);
        return first == held_.end() || first->sender == sender;
    }
    void hold(uint32_t member, uint64_t tag, const void *sender) {
        auto its = [&](const Held &h) { return h.sender == sender; };
        if (std::none_of(held_.begin(), held_.end(), its)) held_.push_back({member, tag, sender});
    }
    // It was sent, or never will be.
    void release(const void *sender) {
        std::erase_if(held_, [&](const Held &h) { return h.sender == sender; });
    }

  private:
    struct Held {
        uint32_t member;
        uint64_t tag;
        const void *sender; // only compared
    };
    std::vector<Held> held_; // oldest first
};

} // namespace dtrain::engine
