// The tag ids that the groups of a process use, in one job.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "wire/control.h"

#include <mutex>

namespace dtrain::cluster {

using wire::group_tags, wire::no_tag, wire::TagSet; // bit t of word t / 64: tag id t is in use

// Any thread.
class TagIds {
  public:
    bool take(uint32_t tag) { // false: it is in use
        std::lock_guard lock(mutex_);
        const bool free = !has(used_, tag);
        used_[tag / 64] |= bit(tag);
        return free;
    }
    // Takes the first free one from this one on, around, that is not in `except` either; no_tag:
    // there is none.
    int32_t take_from(uint32_t first, const TagSet &except) {
        std::lock_guard lock(mutex_);
        for (uint32_t i = 0; i < group_tags; i++) {
            const uint32_t tag = (first + i) % group_tags;
            if (has(used_, tag) || has(except, tag)) continue;
            used_[tag / 64] |= bit(tag);
            return int32_t(tag);
        }
        return no_tag;
    }
    void free(uint32_t tag) {
        std::lock_guard lock(mutex_);
        used_[tag / 64] &= ~bit(tag);
    }
    TagSet used() const {
        std::lock_guard lock(mutex_);
        return used_;
    }

  private:
    static uint64_t bit(uint32_t tag) { return uint64_t{1} << tag % 64; }
    static bool has(const TagSet &tags, uint32_t tag) { return (tags[tag / 64] & bit(tag)) != 0; }

    mutable std::mutex mutex_;
    TagSet used_{};
};

} // namespace dtrain::cluster
