// Shared memory of a context by address: so a call finds out that its buffers have it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "memory/registration.h"

#include <atomic>
#include <shared_mutex>
#include <vector>

namespace dtrain::memory {

class Registry { // thread-safe
  public:
    // Only shared ones are kept.
    void add(Registration *registration);
    // BUSY while an operation uses it; the caller destroys it afterwards.
    Status remove(Registration *registration);
    // The registration that holds these bytes, with one more user; nullptr: none does.
    Registration *hold(const void *address, uint64_t bytes);

  private:
    std::shared_mutex mutex_;
    std::vector<Registration *> sorted_; // by address; they do not overlap
    std::atomic<size_t> count_{0};       // so that programs without any pay one load
};

} // namespace dtrain::memory
