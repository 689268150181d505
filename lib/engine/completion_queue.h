// Finished operations in the order in which they finished, with a file descriptor to wait on.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/fd.h"
#include "base/status.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace dtrain::engine {

class CompletionQueue { // thread-safe
  public:
    static Status create(uint32_t depth, std::unique_ptr<CompletionQueue> &out);

    // Reserves a place for one more operation; false if the queue might overflow.
    bool reserve();
    void unreserve(); // the operation was not posted after all
    void push(const dtrain_event_t &event);
    uint32_t take(dtrain_event_t *events, uint32_t max); // frees their places
    bool empty() const { return count_.load(std::memory_order_acquire) == 0; }
    bool used() const { return reserved_.load(std::memory_order_acquire) != 0; }
    int fd() const { return fd_.get(); }

  private:
    std::mutex mutex_;
    std::vector<dtrain_event_t> ring_;
    uint32_t head_ = 0;
    std::atomic<uint32_t> count_{0};
    std::atomic<uint32_t> reserved_{0}; // operations in flight, and completions not taken yet
    Fd fd_;                             // eventfd, readable while count_ > 0
};

} // namespace dtrain::engine
