// The completions that progress() still has to report. Room is reserved when an operation is
// accepted, so that completing it cannot fail.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dtrain_basics.h"
#include "dtrain_transport.h"
#include "queue.h"

#include <algorithm>
#include <cstddef>

namespace dtrain::tp {

class Completions {
  public:
    // Reserves room for n more calls of push(). False: no memory; then the operation must not be
    // accepted.
    bool reserve(size_t n = 1) {
        if (!queue_.reserve(queue_.size() + reserved_ + n)) return false;
        reserved_ += n;
        return true;
    }
    // Returns the reservation of an operation that was not accepted after all.
    void unreserve() { reserved_--; }
    void push(const dtrain_tp_done_t &done) {
        reserved_--;
        queue_.push(done);
    }
    bool empty() const { return queue_.empty(); }
    // Moves up to max completions to done[], oldest first; returns how many.
    int32_t pop(dtrain_tp_done_t *done, uint32_t max) {
        const uint32_t n = uint32_t(std::min<size_t>({max, queue_.size(), INT32_MAX}));
        for (uint32_t i = 0; i < n; i++) done[i] = queue_.pop();
        return int32_t(n);
    }

    uint64_t moved = 0; // bytes so far, of operations that have completed or will

  private:
    Queue<dtrain_tp_done_t> queue_;
    size_t reserved_ = 0;
};

} // namespace dtrain::tp
