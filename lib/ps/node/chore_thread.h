// The thread of a server that waits for accelerators, so that the agent's lock is free meanwhile.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/serial_thread.h"
#include "ps/storage/chores.h"

#include <functional>

namespace dtrain::ps {

class ChoreThread final : public Chores { // thread-safe
  public:
    // locked: runs a function under the agent's lock, if the server still exists.
    using Locked = std::function<void(const std::function<void()> &)>;
    explicit ChoreThread(Locked locked) : locked_(std::move(locked)) {}
    Status start(std::function<void()> work, std::function<void()> done) override;
    void finish() { thread_.finish(); } // what was started, and what that starts

  private:
    const Locked locked_;
    SerialThread thread_{"dtrain-gpu"};
};

} // namespace dtrain::ps
