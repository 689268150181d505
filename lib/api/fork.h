// After fork() the child's copy of a handle is dead: its threads and its peers are the parent's.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>

namespace dtrain::api {

// How often this process, or an ancestor since it loaded the library, has forked. Counted from the
// first call of watch_forks() on.
extern std::atomic<uint32_t> fork_generation;
void watch_forks();

// What a handle was made in; cheap enough for every call.
class Birth {
  public:
    bool here() const { return generation_ == fork_generation.load(std::memory_order_relaxed); }

  private:
    uint32_t generation_ = fork_generation.load(std::memory_order_relaxed);
};

} // namespace dtrain::api
