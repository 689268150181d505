// A thread for tasks that need attention now and then, whatever the other threads do.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace dtrain::engine {

// Such a task. Its functions are called by one thread at a time. A job's control plane is one: it
// waits neither for the agent's lock nor for a disk or a peer, since others would take the process
// for dead.
class Background {
  public:
    virtual ~Background() = default;
    virtual int event_fd() = 0;             // readable when work() has something to do
    virtual int64_t next_deadline_ns() = 0; // when work() must be called at the latest
    virtual void work() = 0;                // does not block
    // Called when memory was lacking for work(). Throws nothing.
    virtual void out_of_memory() = 0;
};

class Backgrounds {
  public:
    explicit Backgrounds(Clock &clock) : clock_(clock) {}
    ~Backgrounds(); // joins the thread
    // Starts the thread (name: at most 15 bytes). Without it (progress=manual), waiting threads and
    // dtrain_context_progress() call serve().
    Status start(const char *name);
    void add(Background *background);
    void remove(Background *background); // when this returns, it is not called any more
    int serve();                         // runs each once; returns their number

  private:
    void run();
    void rest();

    Clock &clock_;
    std::mutex mutex_; // guards backgrounds_; held while one of them runs
    std::vector<Background *> backgrounds_;
    std::thread thread_;
    std::atomic<bool> stop_{false};
    Fd wake_;
};

} // namespace dtrain::engine
