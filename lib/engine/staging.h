// Buffers into which pieces are received before they are added up: few and reused, so that they
// stay in the cache.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace dtrain::engine {

class Staging { // under the agent's lock
  public:
    static constexpr uint64_t buffer_bytes = 256 << 10;
    static constexpr size_t most = 8; // 2 MiB per context

    ~Staging() {
        for (void *buffer : free_) std::free(buffer);
    }
    // NULL: none is free now, try when one was given back. A taker that holds none always gets one,
    // so that operations cannot block each other. Larger pieces than buffer_bytes get memory of
    // their own.
    void *take(uint64_t bytes, bool holds_none) {
        if (bytes > buffer_bytes) return std::aligned_alloc(64, (bytes + 63) & ~uint64_t{63});
        if (!free_.empty()) {
            void *buffer = free_.back();
            free_.pop_back();
            return buffer;
        }
        if (made_ >= most && !holds_none) return nullptr;
        void *buffer = std::aligned_alloc(4096, buffer_bytes);
        if (buffer != nullptr) made_++;
        return buffer;
    }
    void give_back(void *buffer, uint64_t bytes) {
        if (bytes > buffer_bytes) {
            std::free(buffer);
        } else if (made_ > most) {
            std::free(buffer);
            made_--;
        } else {
            free_.push_back(buffer);
        }
    }

  private:
    std::vector<void *> free_;
    size_t made_ = 0;
};

} // namespace dtrain::engine
