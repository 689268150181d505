// That the sender's memory does not hold a message any more which both sides copy.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>

namespace dtrain::shm {

// In shared memory; zeros are a valid state. A receiver looks at it after copying from that memory.
// A slot stays revoked until it is free again.
class Revocation {
  public:
    void revoke(uint16_t slot) { slot_.store(slot + 1u); }
    void forget(uint16_t slot) {
        if (is_revoked(slot)) slot_.store(0);
    }
    bool is_revoked(uint16_t slot) const { return slot_.load() == slot + 1u; }

  private:
    std::atomic<uint32_t> slot_; // + 1
};

} // namespace dtrain::shm
