// A thread that does what it is given, one after the other.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <unistd.h>

namespace dtrain {

class SerialThread { // thread-safe
  public:
    explicit SerialThread(const char *name) : name_(name) {} // at most 15 bytes
    ~SerialThread() { finish(); }
    SerialThread(const SerialThread &) = delete;
    SerialThread &operator=(const SerialThread &) = delete;

    // LIMIT: the thread, which starts with the first work, cannot be started; CANCELED: it is about
    // to end. Then the work is not done.
    Status give(std::function<void()> work);
    void finish(); // does what was given, and what that gives

  private:
    void run();

    const char *const name_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> given_;
    bool ending_ = false;
    std::thread thread_;
    pid_t process_ = 0; // that has started it
};

} // namespace dtrain
