// What a waiting thread does while there is no work: spin, then yield, then sleep.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/clock.h"

#include <algorithm>
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

// If every rank has a core, spinning is 100 times faster than a wake-up. If ranks outnumber cores,
// spinning would only keep other ranks from running, so ranks yield at once.
struct WaitPolicy {
    int64_t spin_ns = 50 * us; // how long to spin before sleeping; 0: yield for yield_ns instead
    int64_t yield_ns = 25 * us;
    // The longest sleep; after it the thread checks deadlines and stalls. Where many ranks share a
    // core, these checks of all ranks are what keeps the core busy.
    int64_t sleep_ns = 10 * ms;
};

class Idle {
  public:
    explicit Idle(const WaitPolicy &policy)
        : limit_ns_(policy.spin_ns != 0 ? policy.spin_ns : policy.yield_ns),
          pauses_(policy.spin_ns != 0 ? pauses : 0) {}

    void reset() { rounds_ = 0; }

    // Passes a little time; returns false when it is time to sleep.
    bool pass() {
        rounds_++;
        if (rounds_ <= pauses_) {
            if (rounds_ == first_timed) begin_ns_ = monotonic_clock().now_ns();
            if (rounds_ == last_timed) shorten(monotonic_clock().now_ns() - begin_ns_);
            cpu_pause();
            return true;
        }
        int64_t now = monotonic_clock().now_ns();
        if (rounds_ == pauses_ + 1) begin_ns_ = now;
        if (now - begin_ns_ >= limit_ns_ || taken_ >= most_taken) return false;
        sched_yield();
        if (pauses_ != 0 && monotonic_clock().now_ns() - now > switch_ns) taken_++;
        return true;
    }

    // Whether the last pass() has left the core to others, who may have kept it for 100 ms.
    bool yielded() const { return rounds_ > pauses_; }

    // The thread has slept, so the kernel has chosen a core for it anew.
    static void slept() { taken_ = 0; }

  private:
    // Some microseconds. After that the peer is slow for a reason, perhaps because it needs this
    // core: on a busy machine, pausing longer costs 50 times as much as yielding.
    static constexpr uint32_t pauses = 64;
    static constexpr int64_t pause_ns = 8 * us;
    static constexpr uint32_t first_timed = 4, last_timed = 8;

    // Where polling the devices takes a system call, the usual number of rounds would last too
    // long.
    void shorten(int64_t elapsed_ns) {
        int64_t fit = pause_ns * (last_timed - first_timed) / std::max<int64_t>(elapsed_ns, 1);
        pauses_ = uint32_t(std::clamp<int64_t>(fit, last_timed, pauses));
    }

    // Two threads that wait for each other on one core, each running when the other yields, stay
    // there for long even if another core is idle: to the kernel both look busy. A thread that
    // sleeps is woken on an idle core.
    static constexpr uint32_t most_taken = 32;
    static constexpr int64_t switch_ns = 2 * us; // after a longer yield, another thread has run
    // How often others have taken the core since the thread last slept.
    static inline thread_local uint32_t taken_ = 0;

    const int64_t limit_ns_;
    uint32_t pauses_;
    int64_t begin_ns_ = 0;
    uint32_t rounds_ = 0;
};

} // namespace dtrain::engine
