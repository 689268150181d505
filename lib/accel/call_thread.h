// A thread for calls of an accelerator's library that may be held up.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"
#include "dtrain_device.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>

namespace dtrain::accel {

// Makes calls in order, so that no other thread has to wait for them (quiet.h).
class CallThread { // thread-safe
  public:
    explicit CallThread(const dtrain_dv_ops_t &ops) : ops_(ops) {}
    ~CallThread() { finish(); }
    CallThread(const CallThread &) = delete;
    CallThread &operator=(const CallThread &) = delete;

    // LIMIT: the thread cannot be started, and the call is not made.
    Status give(std::function<void()> call);
    // Has it asked whether the accelerator goes on, by a queue of it that outlives this. OK until
    // an answer says that it does not.
    Status check(dtrain_dv_queue_t *queue);
    void finish(); // makes what was given; nothing may be given after it

  private:
    void run();
    Status add(std::function<void()> call); // with the lock

    const dtrain_dv_ops_t &ops_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> calls_;
    bool ending_ = false, asks_ = false;
    Status failed_ = DTRAIN_OK;
    std::string failure_;
    std::thread thread_; // started with the first call
    pid_t process_ = 0;  // that has started it
};

} // namespace dtrain::accel
