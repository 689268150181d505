// Wakes threads that sleep until an accelerator's queue gets somewhere.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/fd.h"
#include "base/status.h"
#include "dtrain_device.h"

#include <atomic>
#include <cstdint>
#include <memory>

namespace dtrain::accel {

// The accelerator calls it in a thread of its own, after what the library waits for is done:
// perhaps so late that the context is gone, and its descriptor's number another file's. So each
// call that is to come keeps the waker. One that never comes, because the accelerator has failed,
// leaks it.
class Waker {
  public:
    struct Release {
        void operator()(Waker *waker) const { waker->release(); }
    };
    using Owner = std::unique_ptr<Waker, Release>;
    static Status make(int wake_fd, Owner &out); // an eventfd; a duplicate of it is kept
    Waker(const Waker &) = delete;
    Waker &operator=(const Waker &) = delete;

    // Has the eventfd written to when the queue gets there. If that cannot be had, sleeps only last
    // longer. Any thread.
    void call_after(const dtrain_dv_ops_t &ops, dtrain_dv_queue_t *queue);

  private:
    explicit Waker(Fd fd) : fd_(std::move(fd)) {}
    ~Waker() = default;
    static void called(void *self);
    void release();

    const Fd fd_;
    std::atomic<uint32_t> keepers_{1}; // the owner, and calls to come
};

} // namespace dtrain::accel
