// The helper thread of a context: moves data while something is pending and no other thread waits
// for it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "engine/agent.h"

#include <atomic>
#include <thread>

namespace dtrain::engine {

class Helper {
  public:
    explicit Helper(Agent &agent) : agent_(agent) {}
    ~Helper();                      // joins the thread
    Status start(bool always_poll); // even if a thread waits

  private:
    void run();
    enum class Rest : uint8_t {
        parked,    // until woken
        as_poller, // until woken, or the agent has work
        dozing     // for a short time; cannot be woken
    };
    bool nobody_polls() const;
    bool poll_agent();
    bool rest(Rest how);
    void wake();

    Agent &agent_;
    std::thread thread_;
    std::atomic<bool> stop_{false}, parked_{false};
    int64_t doze_ns_ = 0; // length of the last rest if it was dozing, else 0
    bool always_poll_ = false;
    Fd wake_;
};

} // namespace dtrain::engine
