// A bounded queue of records: any thread can put, one thread takes, none waits.
// SPDX-License-Identifier: Apache-2.0
//
// Each slot has the number of the turn in which it may be written (even laps of the ring) or read
// (one more). Source: D. Vyukov, Bounded MPMC queue, 1024cores.net.
#pragma once
#include "trace/record.h"

#include <atomic>
#include <cstdint>
#include <memory>

namespace dtrain::trace {

class Ring {
  public:
    // `slots` must be a power of two.
    explicit Ring(uint64_t slots) : mask_(slots - 1), slots_(new Slot[slots]) {
        for (uint64_t i = 0; i < slots; i++) slots_[i].turn.store(i, std::memory_order_relaxed);
    }

    // False: the ring is full; the record is dropped and counted.
    bool put(const Record &record) {
        uint64_t at = head_.load(std::memory_order_relaxed);
        for (;;) {
            Slot &slot = slots_[at & mask_];
            auto behind = int64_t(slot.turn.load(std::memory_order_acquire) - at);
            if (behind < 0) {
                dropped_.fetch_add(1, std::memory_order_relaxed);
                return false;
            }
            if (behind > 0)
                at = head_.load(std::memory_order_relaxed);
            else if (head_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) {
                slot.record = record;
                slot.turn.store(at + 1, std::memory_order_release);
                return true;
            }
        }
    }

    // One thread at a time. False: the ring is empty.
    bool take(Record &out) {
        Slot &slot = slots_[tail_ & mask_];
        if (slot.turn.load(std::memory_order_acquire) != tail_ + 1) return false;
        out = slot.record;
        slot.turn.store(tail_ + mask_ + 1, std::memory_order_release);
        tail_++;
        return true;
    }

    uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

  private:
    struct Slot {
        std::atomic<uint64_t> turn{0};
        Record record;
    };
    const uint64_t mask_;
    const std::unique_ptr<Slot[]> slots_;
    alignas(64) std::atomic<uint64_t> head_{0};
    std::atomic<uint64_t> dropped_{0};
    alignas(64) uint64_t tail_ = 0;
};

} // namespace dtrain::trace
