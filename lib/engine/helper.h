// The helper thread of a context: serves the control plane always, and moves data while something
// is pending and nobody waits for it. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "engine/agent.h"

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace dtrain::engine {

// Something that needs attention now and then whatever the program does (a job's control plane).
// Its functions are called by one thread at a time.
class Background {
  public:
    virtual ~Background() = default;
    virtual int event_fd() = 0;             // readable when work() has something to do
    virtual int64_t next_deadline_ns() = 0; // when work() is due at the latest
    virtual void work() = 0;                // does not block
    // There was no memory for work(). Throws nothing.
    virtual void out_of_memory() = 0;
};

class Helper {
  public:
    explicit Helper(Agent &agent) : agent_(agent) {}
    ~Helper(); // joins the thread
    // manual: no thread; serve() is called by those who wait and by dtrain_context_progress().
    Status start(bool manual, bool always_poll);
    void add(Background *background);
    void remove(Background *background); // not called any more when this returns
    int serve();                         // one look at every background; returns their number

  private:
    void run();
    enum class Rest : uint8_t {
        parked,    // until woken
        as_poller, // or the agent has something
        dozing     // for a little while; cannot be woken
    };
    bool nobody_polls() const;
    bool poll_agent();
    bool rest(Rest how);
    void wake();

    Agent &agent_;
    std::mutex mutex_; // backgrounds_; held while one is served
    std::vector<Background *> backgrounds_;
    std::thread thread_;
    std::atomic<bool> stop_{false}, parked_{false};
    int64_t doze_ns_ = 0; // of the last rest; 0: it was none of these
    bool always_poll_ = false;
    Fd wake_;
};

} // namespace dtrain::engine
