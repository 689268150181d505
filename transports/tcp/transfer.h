// What is under way on a connection.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/match.h"
#include "tcp/frame.h"

#include <cstddef>
#include <memory>
#include <new>

struct dtrain_tp_ep;

namespace dtrain::tcp {

struct Send { // an accepted send() that is not complete
    dtrain_tp_ep *endpoint = nullptr;
    uint64_t tag = 0;
    uint64_t length = 0;
    uint64_t cookie = 0;
    uint32_t id = 0;      // what the peer calls it, once announced
    uint32_t peer_id = 0; // what the peer calls its receive, once granted
    tp::IovCursor from;
    // The rest of the frame on its way when the send was canceled (it was reported then).
    std::unique_ptr<uint8_t[]> orphan;
    tp::Link<Send> link;
};
using SendList = tp::List<Send, &Send::link>;

struct Transfer { // a receive whose data is on its way, after a grant
    tp::Receive *receive = nullptr;
    uint64_t tag = 0;
    uint64_t length = 0; // as sent; receive->into is cut to what was granted
    uint32_t id = 0;
    uint32_t send_id = 0; // the sender's number for it
};

// Control frames that wait for the socket.
class FrameQueue {
  public:
    bool empty() const { return !size_; }
    bool push(const Frame &frame) { // false: no memory
        if (size_ == capacity_ && !grow()) return false;
        ring_[(head_ + size_++) & (capacity_ - 1)] = frame;
        return true;
    }
    Frame pop() {
        size_--;
        return ring_[head_++ & (capacity_ - 1)];
    }

  private:
    bool grow() {
        const size_t capacity = capacity_ ? 2 * capacity_ : 16;
        std::unique_ptr<Frame[]> ring(new (std::nothrow) Frame[capacity]);
        if (!ring) return false;
        for (size_t i = 0; i < size_; i++) ring[i] = ring_[(head_ + i) & (capacity_ - 1)];
        ring_ = std::move(ring);
        capacity_ = capacity;
        head_ = 0;
        return true;
    }
    std::unique_ptr<Frame[]> ring_;
    size_t capacity_ = 0; // a power of two, or 0
    size_t head_ = 0;
    size_t size_ = 0;
};

} // namespace dtrain::tcp
