// Accounts for the memory beside tables that a server holds for one worker, with a limit.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/table/protocol.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace dtrain::ps {

class PeerMemory {
  public:
    // limit: in bytes; 0: no limit.
    explicit PeerMemory(uint64_t limit) : limit_(std::min(limit, UINT64_MAX / 2)) {}

    uint64_t held() const { return held_; }
    uint64_t most_held() const { return most_held_; } // the peak
    uint64_t limit() const { return limit_; }
    bool fits(uint64_t bytes) const { return limit_ == 0 || held_ + bytes <= limit_; }
    // Waiting requests may take half of the limit, so that there is always room for the requests
    // that release them.
    bool may_wait(uint64_t bytes) const { return limit_ == 0 || held_ + bytes <= limit_ / 2; }
    // Whether the limit plus a reserve for small answers is used up: the worker does not receive
    // its answers, so the server must not add more.
    bool full() const { return limit_ != 0 && held_ >= limit_ + small_answers; }

  private:
    friend class Charge;
    static constexpr uint64_t small_answers = chunk_bytes;

    uint64_t limit_, held_ = 0, most_held_ = 0;
};

// Charges bytes to a PeerMemory, which must outlive this object, until the destruction.
class Charge {
  public:
    Charge() = default;
    Charge(PeerMemory &memory, uint64_t bytes) : memory_(&memory), bytes_(bytes) {
        memory.held_ += bytes;
        memory.most_held_ = std::max(memory.most_held_, memory.held_);
    }
    ~Charge() {
        if (memory_ != nullptr) memory_->held_ -= bytes_;
    }
    Charge(Charge &&other) noexcept
        : memory_(std::exchange(other.memory_, nullptr)), bytes_(other.bytes_) {}
    Charge &operator=(Charge &&other) noexcept {
        std::swap(memory_, other.memory_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }

  private:
    PeerMemory *memory_ = nullptr;
    uint64_t bytes_ = 0;
};

} // namespace dtrain::ps
