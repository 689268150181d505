// Memory that lets the library go on when the process has none left.
// SPDX-License-Identifier: Apache-2.0
//
// When malloc() fails, a call that creates something can be refused. Work in progress (for this
// program and for its peers) and the code that ends it cannot. So the library's own operator new
// takes small pieces from this reserve when malloc() has none: operations in flight continue, and
// everything can be destroyed. Meanwhile calls that create something fail with DTRAIN_ERR_NO_MEMORY
// (drawn_on(), in api/guard.h), so that no program lives on the reserve for long. Large pieces are
// never taken from it: code that asks for one must expect to get none.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace dtrain {

class MemoryReserve { // any thread
  public:
    static constexpr size_t largest = 64 << 10, total = 2 << 20, alignment = 64;

    // Returns nullptr if `bytes` is too large or nothing is left. Any small size, even 0, is valid.
    static void *take(size_t bytes);
    static bool holds(const void *piece) {
        return reinterpret_cast<uintptr_t>(piece) - reinterpret_cast<uintptr_t>(memory_) < total;
    }
    static void give_back(void *piece); // a piece for which holds() is true
    // Whether any pieces of the reserve are in use.
    static bool in_use() { return used_.load(std::memory_order_relaxed) != 0; }
    // Whether pieces are in use and malloc() still fails.
    static bool drawn_on() { return in_use() && !memory_is_back(); }

  private:
    static bool memory_is_back();

    alignas(alignment) static std::byte memory_[total]; // no page exists before it is touched
    static std::atomic<size_t> used_;
};

} // namespace dtrain
