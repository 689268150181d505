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
    int64_t spin_ns = 50 * us; // how long before sleeping; with spin_ns 0: yield_ns
    int64_t yield_ns = 25 * us;
};

class Idle {
  public:
    explicit Idle(const WaitPolicy &policy)
        : limit_ns_(policy.spin_ns != 0 ? policy.spin_ns : policy.yield_ns),
          pauses_(policy.spin_ns != 0 ? pauses : 0) {}

    void reset() { rounds_ = 0; }

    // Passes a little time; false when it is time to sleep.
    bool pass() {
        rounds_++;
        if (rounds_ <= pauses_) {
            cpu_pause();
            return true;
        }
        if (rounds_ == pauses_ + 1)
            begin_ns_ = monotonic_clock().now_ns(); // costs as much as a pause: read now and then
        else if (rounds_ % 8 == 0 && monotonic_clock().now_ns() - begin_ns_ >= limit_ns_)
            return false;
        sched_yield();
        return true;
    }

  private:
    // Some microseconds. Longer than that the peer is slow for a reason, perhaps because it wants
    // this core: on a busy machine pausing on costs 50 times what yielding does.
    static constexpr uint32_t pauses = 64;
    const int64_t limit_ns_;
    const uint32_t pauses_;
    int64_t begin_ns_ = 0;
    uint32_t rounds_ = 0;
};

} // namespace dtrain::engine
