// Detects handles used after fork(): the child's copies are unusable, since their threads and
// connections belong to the parent.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>

namespace dtrain::api {

// How many times this process, or an ancestor since it loaded the library, has forked. Counting
// starts at the first call of watch_forks().
extern std::atomic<uint32_t> fork_generation;
void watch_forks();

// Remembers the process that made a handle; here() is cheap enough for every call.
class Birth {
  public:
    bool here() const { return generation_ == fork_generation.load(std::memory_order_relaxed); }

  private:
    uint32_t generation_ = fork_generation.load(std::memory_order_relaxed);
};

} // namespace dtrain::api
