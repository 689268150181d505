// What the library lives on while the process has no memory left.
// SPDX-License-Identifier: Apache-2.0
//
// A call that makes something new can be refused when malloc() fails; work that is under way, for
// this program and for the peers, and what ends it, cannot. So operator new, which the library has
// for itself, takes small pieces from here when malloc() has none: what is in flight goes on, and
// everything can be destroyed. Meanwhile calls that make something new end with
// DTRAIN_ERR_NO_MEMORY (drawn_on(), in api/guard.h), so that no program lives on it for long. Large
// pieces are never taken from here: who asks for one has to expect that there is none.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace dtrain {

class MemoryReserve { // any thread
  public:
    static constexpr size_t largest = 64 << 10, total = 2 << 20, alignment = 64;

    // nullptr: too large, or nothing is left. No size is too small.
    static void *take(size_t bytes);
    static bool holds(const void *piece) {
        return reinterpret_cast<uintptr_t>(piece) - reinterpret_cast<uintptr_t>(memory_) < total;
    }
    static void give_back(void *piece); // that it holds
    // Whether pieces of it are in use.
    static bool in_use() { return used_.load(std::memory_order_relaxed) != 0; }
    // Whether malloc() still has nothing.
    static bool drawn_on() { return in_use() && !memory_is_back(); }

  private:
    static bool memory_is_back();

    alignas(alignment) static std::byte memory_[total]; // no page of it exists before it is touched
    static std::atomic<size_t> used_;
};

} // namespace dtrain
