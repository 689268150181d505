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
        if (policy_.spin_ns > 0) {
            // The clock is read once in a while: reading it costs as much as a pause.
            if (rounds_ == 0) begin_ns_ = monotonic_clock().now_ns();
            rounds_++;
            if (rounds_ % 32 != 0 || monotonic_clock().now_ns() - begin_ns_ < policy_.spin_ns) {
                cpu_pause();
                return true;
            }
            return false;
        }
        if (rounds_ >= policy_.yields) return false;
        rounds_++;
        sched_yield();
        return true;
    }

  private:
    const WaitPolicy policy_;
    int64_t begin_ns_ = 0;
    uint32_t rounds_ = 0;
};

} // namespace dtrain::engine
