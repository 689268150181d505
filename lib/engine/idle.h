// What a waiting thread does when there is nothing to do: spin, then yield, then sleep.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/clock.h"

#include <cstdint>
#include <sched.h>

namespace dtrain::engine {

inline void cpu_pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// With a core for every rank spinning is 100 times faster than a wake-up; with more ranks than
// cores it would only keep the others from running, so they yield at once.
struct WaitPolicy {
    int64_t spin_ns = 50 * us; // 0: do not spin
    uint32_t yields = 64;      // before sleeping
};

class Idle {
  public:
    explicit Idle(const WaitPolicy &policy) : policy_(policy) {}

    void reset() { rounds_ = 0; }

    // Passes a little time; false when it is time to sleep.
    bool pass() {
        rounds_++;
        if (policy_.spin_ns == 0) {
            if (rounds_ > policy_.yields) return false;
        } else if (rounds_ <= pauses) {
            cpu_pause();
            return true;
        } else if (rounds_ == pauses + 1) {
            begin_ns_ = monotonic_clock().now_ns(); // costs as much as a pause: read now and then
        } else if (rounds_ % 8 == 0 && monotonic_clock().now_ns() - begin_ns_ >= policy_.spin_ns) {
            return false;
        }
        sched_yield();
        return true;
    }

  private:
    // Some microseconds. Longer than that the peer is slow for a reason, perhaps because it wants
    // this core: on a busy machine pausing on costs 50 times what yielding does.
    static constexpr uint32_t pauses = 64;
    const WaitPolicy policy_;
    int64_t begin_ns_ = 0;
    uint32_t rounds_ = 0;
};

} // namespace dtrain::engine
