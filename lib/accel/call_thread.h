// A thread for calls of an accelerator's library that may be held up.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/serial_thread.h"
#include "dtrain_device.h"

#include <mutex>
#include <string>

namespace dtrain::accel {

// Makes calls in order, so that no other thread has to wait for them (quiet.h).
class CallThread { // thread-safe
  public:
    explicit CallThread(const dtrain_dv_ops_t &ops) : ops_(ops) {}

    Status give(std::function<void()> call) { return thread_.give(std::move(call)); }
    // Has it asked whether the accelerator goes on, by a queue of it that outlives this. OK until
    // an answer says that it does not.
    Status check(dtrain_dv_queue_t *queue);
    void finish() { thread_.finish(); } // makes what was given; nothing may be given after it

  private:
    const dtrain_dv_ops_t &ops_;
    std::mutex mutex_; // of what follows
    bool asks_ = false;
    Status failed_ = DTRAIN_OK;
    std::string failure_;
    SerialThread thread_{"dtrain-device"};
};

} // namespace dtrain::accel
