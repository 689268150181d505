// Numbers the jobs that a context is a member of at one time. The number is part of the tags of all
// messages to it, so that those of different jobs never meet.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "engine/tag.h"

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>

namespace dtrain::engine {

// Any thread.
class JobSlots {
  public:
    // In turn, since messages to a job that has just ended may still arrive. None: all are taken.
    std::optional<uint32_t> take() {
        std::lock_guard lock(mutex_);
        for (uint32_t i = 0; i < max_jobs; i++) {
            const uint32_t slot = (next_ + i) % max_jobs;
            if (taken_[slot]) continue;
            taken_[slot] = true;
            next_ = slot + 1;
            count_++;
            return slot;
        }
        return std::nullopt;
    }
    void free(uint32_t slot) {
        std::lock_guard lock(mutex_);
        taken_[slot] = false;
        count_--;
    }
    uint32_t count() const {
        std::lock_guard lock(mutex_);
        return count_;
    }

  private:
    mutable std::mutex mutex_;
    std::array<bool, max_jobs> taken_{};
    uint32_t next_ = 0, count_ = 0;
};

} // namespace dtrain::engine
