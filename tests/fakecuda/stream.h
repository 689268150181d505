// A stream, and the thread that does its work.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "fake.h"

#include <condition_variable>
#include <deque>
#include <random>
#include <thread>

namespace fakecuda {

// Does what is posted, in order. Its thread holds it alive until all is done.
class Worker {
  public:
    Worker(unsigned seed, unsigned delay_us);
    static void start(const std::shared_ptr<Worker> &self);
    void post(std::function<bool()> work);
    void stop(); // after what has been posted

  private:
    void loop();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<bool()>> work_;
    bool stop_ = false;
    std::minstd_rand random_;
    unsigned delay_us_;
};

struct StreamState {
    std::shared_ptr<Worker> worker;
    Context context;
    std::atomic<bool> capturing{false};
    std::atomic<uint64_t> submitted{0};
    std::shared_ptr<std::atomic<uint64_t>> done = std::make_shared<std::atomic<uint64_t>>(0);
};

} // namespace fakecuda
