// The thread of a server that waits for accelerators, so that the agent's lock is free meanwhile.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/storage/chores.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace dtrain::ps {

class ChoreThread final : public Chores { // thread-safe
  public:
    // locked: runs a function under the agent's lock, if the server still exists.
    using Locked = std::function<void(const std::function<void()> &)>;
    explicit ChoreThread(Locked locked) : locked_(std::move(locked)) {}
    ~ChoreThread() override { finish(); }
    Status start(std::function<void()> work, std::function<void()> done) override;
    void finish(); // what was started, and what that starts

  private:
    void run();

    struct Chore {
        std::function<void()> work, done;
    };
    const Locked locked_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Chore> chores_;
    bool ending_ = false;
    std::thread thread_; // started with the first one
};

} // namespace dtrain::ps
