// The tag ids that the groups of a process use, in one job.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "wire/control.h"

#include <functional>
#include <mutex>
#include <utility>

namespace dtrain::cluster {

using wire::group_tags, wire::no_tag, wire::TagSet; // bit t of word t / 64: tag id t is in use

// Any thread.
class TagIds {
  public:
    // taken: called for each tag id that is taken, before anybody can know of it. What has come
    // with that id until then is of an earlier group.
    using Taken = std::function<void(uint32_t)>;
    explicit TagIds(Taken taken = {}) : taken_(std::move(taken)) {}

    // The world's, with which others may have sent already.
    void take_world() { (void)mark(world_tag); }
    bool take(uint32_t tag) { // false: it is in use
        const bool was_free = mark(tag);
        if (was_free && taken_) taken_(tag);
        return was_free;
    }
    // Takes the first free one from this one on, around, that is not in `except` either; no_tag:
    // there is none.
    int32_t take_from(uint32_t first, const TagSet &except) {
        for (uint32_t i = 0; i < group_tags; i++) {
            const uint32_t tag = (first + i) % group_tags;
            if (!has(except, tag) && take(tag)) return int32_t(tag);
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
    static constexpr uint32_t world_tag = 0;
    bool mark(uint32_t tag) {
        std::lock_guard lock(mutex_);
        const bool was_free = !has(used_, tag);
        used_[tag / 64] |= bit(tag);
        return was_free;
    }
    static uint64_t bit(uint32_t tag) { return uint64_t{1} << tag % 64; }
    static bool has(const TagSet &tags, uint32_t tag) { return (tags[tag / 64] & bit(tag)) != 0; }

    const Taken taken_;
    mutable std::mutex mutex_;
    TagSet used_{};
};

} // namespace dtrain::cluster
