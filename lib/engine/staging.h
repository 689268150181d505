// Buffers into which pieces are received before they are added up: few and reused, so that they
// stay in the cache.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace dtrain::engine {

class Staging { // under the agent's lock
  public:
    explicit Staging(uint64_t buffer_bytes)
        : buffer_bytes_((buffer_bytes + 4095) / 4096 * 4096),
          most_(std::max<size_t>(2, usual_bytes / buffer_bytes_)) {}
    ~Staging() {
        for (void *buffer : free_) std::free(buffer);
    }
    // NULL: none is free now, try when one was given back. A taker that holds none, or whose other
    // ones may have to wait for this one, always gets one, so that nobody blocks anybody. Larger
    // pieces get memory of their own.
    void *take(uint64_t bytes, bool needs_it) {
        if (bytes > buffer_bytes_) return std::aligned_alloc(64, (bytes + 63) & ~uint64_t{63});
        if (!free_.empty()) {
            void *buffer = free_.back();
            free_.pop_back();
            return buffer;
        }
        if (made_ >= most_ && !needs_it) return nullptr;
        void *buffer = std::aligned_alloc(4096, buffer_bytes_);
        if (buffer != nullptr) made_++;
        return buffer;
    }
    void give_back(void *buffer, uint64_t bytes) {
        if (bytes > buffer_bytes_) {
            std::free(buffer);
        } else if (made_ > most_) {
            std::free(buffer);
            made_--;
        } else {
            free_.push_back(buffer);
        }
    }

  private:
    static constexpr uint64_t usual_bytes = 2 << 20; // per context
    const uint64_t buffer_bytes_;
    const size_t most_;
    std::vector<void *> free_;
    size_t made_ = 0;
};

} // namespace dtrain::engine
