// Keeps calls that wait for streams apart from streams that wait for operations.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <mutex>
#include <shared_mutex>

namespace dtrain::accel {

// NVIDIA's driver (580) waits for all streams when it frees, unpins or imports memory or loads
// kernels, and every other call waits for that one. If a stream of the process waits for an
// operation then, the operation must not need any call. So while this is true, no stream waits, and
// none begins to: the library makes such calls only then. The program may make them at any time:
// while a stream waits, threads that operations depend on leave all calls to a CallThread.
class Quiet {
  public:
    Quiet() : lock_(mutex_, std::try_to_lock) {
        if (lock_ && waiting_.load(std::memory_order_acquire) > 0) lock_.unlock();
    }
    explicit operator bool() const { return lock_.owns_lock(); }

    // Around the time in which a stream may wait. The first one waits until nobody is quiet.
    static void begin_wait() {
        const std::lock_guard lock(mutex_);
        waiting_.fetch_add(1, std::memory_order_acq_rel);
    }
    static void end_wait() { waiting_.fetch_sub(1, std::memory_order_release); }

  private:
    static inline std::shared_mutex mutex_;
    static inline std::atomic<int> waiting_{0}; // streams
    std::shared_lock<std::shared_mutex> lock_;
};

} // namespace dtrain::accel
