// The completions that progress() has still to report. Room is reserved when an operation is
// accepted, so that completing it cannot fail.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dtrain_transport.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace dtrain::tp {

class Completions {
  public:
    // Room for n more push(). False: no memory; then do not accept the operation.
    bool reserve(size_t n = 1) {
        while (reserved_ + size_ + n > capacity_)
            if (!grow()) return false;
        reserved_ += n;
        return true;
    }
    // Gives a reservation back for an operation that was not accepted after all.
    void unreserve() { reserved_--; }
    void push(const dtrain_tp_done_t &done) {
        reserved_--;
        ring_[(head_ + size_++) & (capacity_ - 1)] = done;
    }
    bool empty() const { return !size_; }
    // Moves up to max completions to done[], oldest first; returns how many.
    int32_t pop(dtrain_tp_done_t *done, uint32_t max) {
        const uint32_t n = uint32_t(std::min<size_t>({max, size_, INT32_MAX}));
        for (uint32_t i = 0; i < n; i++) done[i] = ring_[(head_ + i) & (capacity_ - 1)];
        head_ += n;
        size_ -= n;
        return int32_t(n);
    }

  private:
    bool grow() {
        const size_t capacity = capacity_ ? 2 * capacity_ : 64;
        std::unique_ptr<dtrain_tp_done_t[]> ring(new (std::nothrow) dtrain_tp_done_t[capacity]);
        if (!ring) return false;
        for (size_t i = 0; i < size_; i++) ring[i] = ring_[(head_ + i) & (capacity_ - 1)];
        ring_ = std::move(ring);
        capacity_ = capacity;
        head_ = 0;
        return true;
    }
    std::unique_ptr<dtrain_tp_done_t[]> ring_;
    size_t capacity_ = 0; // a power of two, or 0
    size_t head_ = 0;
    size_t size_ = 0;
    size_t reserved_ = 0;
};

} // namespace dtrain::tp
