// Finds shared memory of a context by address: tells a call whether its buffers are shared.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "memory/registration.h"

#include <atomic>
#include <shared_mutex>
#include <vector>

namespace dtrain::memory {

class Registry { // thread-safe
  public:
    // Keeps only shared registrations.
    void add(Registration *registration);
    // BUSY while an operation uses it. After OK the caller destroys it.
    Status remove(Registration *registration);
    // Returns the registration that holds these bytes and adds one user; nullptr: there is none.
    Registration *hold(const void *address, uint64_t bytes);

  private:
    std::shared_mutex mutex_;
    std::vector<Registration *> sorted_; // by address; they do not overlap
    std::atomic<size_t> count_{0};       // lets programs without any skip the lock
};

} // namespace dtrain::memory
