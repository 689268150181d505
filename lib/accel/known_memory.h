// Finds registered memory of accelerators by address.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "accel/device_memory.h"

#include <atomic>
#include <memory>
#include <shared_mutex>
#include <vector>

namespace dtrain::accel {

class KnownMemory { // thread-safe
  public:
    // INVALID: a part of it is there already.
    Status add(std::shared_ptr<DeviceMemory> memory);
    // BUSY while something uses it; else it is destroyed.
    Status remove(const DeviceMemory &memory);
    // Whether the bytes lie in such memory. `out` then counts as a user of it.
    bool find(const void *address, uint64_t bytes, Where &out) const;

  private:
    using List = std::vector<std::shared_ptr<DeviceMemory>>;
    List::const_iterator after(const void *address) const;

    mutable std::shared_mutex mutex_;
    List sorted_;                  // by address; they do not overlap
    std::atomic<size_t> count_{0}; // lets programs without any skip the lock
};

} // namespace dtrain::accel
