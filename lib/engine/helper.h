// The helper thread of a context: always serves the control plane, and moves data while something
// is pending and no other thread waits for it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "engine/agent.h"

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace dtrain::engine {

// A task that needs attention now and then whatever the program does (a job's control plane). Its
// functions are called by one thread at a time.
class Background {
  public:
    virtual ~Background() = default;
    virtual int event_fd() = 0;             // readable when work() has something to do
    virtual int64_t next_deadline_ns() = 0; // when work() must be called at the latest
    virtual void work() = 0;                // does not block
    // Called when memory was lacking for work(). Throws nothing.
    virtual void out_of_memory() = 0;
};

class Helper {
  public:
    explicit Helper(Agent &agent) : agent_(agent) {}
    ~Helper(); // joins the thread
    // manual: no thread is started; waiting threads and dtrain_context_progress() call serve().
    Status start(bool manual, bool always_poll);
    void add(Background *background);
    void remove(Background *background); // when this returns, the background is not called any more
    int serve();                         // runs every background once; returns their number

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
    std::mutex mutex_; // guards backgrounds_; held while one of them runs
    std::vector<Background *> backgrounds_;
    std::thread thread_;
    std::atomic<bool> stop_{false}, parked_{false};
    int64_t doze_ns_ = 0; // length of the last rest if it was dozing, else 0
    bool always_poll_ = false;
    Fd wake_;
};

} // namespace dtrain::engine
