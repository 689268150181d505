// What two processes copy together from one's memory to the other's: a side that is free takes the
// next part.
// SPDX-License-Identifier: Apache-2.0
//
// Guided self-scheduling (Polychronopoulos and Kuck, 1987): a part is half of the rest, so that
// both sides work to the end with few system calls, and one side copies everything if the other is
// busy.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

namespace dtrain::tp {

// Smaller parts cost more calls than they save waiting.
inline constexpr uint64_t least_part = 64 << 10;
inline constexpr uint64_t most_part = 1 << 20; // per step, since whoever copies has other work, too

struct Part {
    uint64_t begin = 0, bytes = 0;
};

// In memory that both share; zeros are a valid state.
class Parts {
  public:
    void open() { taken_.store(0, std::memory_order_relaxed); } // before the other side is told
    void close() { taken_.store(UINT64_MAX); }                  // no side takes parts any more
    bool are_taken(uint64_t of_bytes) const {
        return taken_.load(std::memory_order_relaxed) >= of_bytes;
    }
    // Whoever writes into the other's memory calls these around each part that it copies: a
    // receiver that calls close() and then sees that nothing is being written knows that nothing
    // more will be. It waits for that at most this long: a part takes less than a millisecond if
    // its process runs, and one that was stopped has nearly always written it, since it stops when
    // it leaves the kernel.
    static constexpr int64_t writing_limit_ns = 40'000'000;
    void begin_write() { is_writing_.store(1); }
    void end_write() { is_writing_.store(0, std::memory_order_release); }
    bool is_being_written() const { return is_writing_.load() != 0; }
    // Takes a part of a message of this many bytes, or none. It lies within the message, whatever
    // the other side does.
    Part take(uint64_t of_bytes) {
        uint64_t begin = taken_.load(std::memory_order_relaxed);
        for (int attempt = 0; attempt < 4 && begin < of_bytes; attempt++) {
            uint64_t left = of_bytes - begin;
            uint64_t part = std::min(left, std::clamp(left / 2, least_part, most_part));
            if (taken_.compare_exchange_strong(begin, begin + part)) return {begin, part};
        }
        return {};
    }

  private:
    std::atomic<uint64_t> taken_; // bytes
    std::atomic<uint32_t> is_writing_;
};

} // namespace dtrain::tp
