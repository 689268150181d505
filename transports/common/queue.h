// A growing ring buffer of small elements, oldest first.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace dtrain::tp {

template <class T> class Queue {
  public:
    bool empty() const { return !size_; }
    size_t size() const { return size_; }
    // Makes room for n elements in total. False: no memory.
    bool reserve(size_t n) {
        while (n > capacity_)
            if (!grow()) return false;
        return true;
    }
    // False: no memory; never happens for elements for which room was reserved.
    bool push(const T &thing) {
        if (!reserve(size_ + 1)) return false;
        ring_[(head_ + size_++) & (capacity_ - 1)] = thing;
        return true;
    }
    // front() and pop() must not be called when the queue is empty.
    const T &front() const { return ring_[head_ & (capacity_ - 1)]; }
    T pop() {
        size_--;
        return ring_[head_++ & (capacity_ - 1)];
    }

  private:
    bool grow() {
        const size_t capacity = capacity_ ? 2 * capacity_ : 16;
        std::unique_ptr<T[]> ring(new (std::nothrow) T[capacity]);
        if (!ring) return false;
        for (size_t i = 0; i < size_; i++) ring[i] = ring_[(head_ + i) & (capacity_ - 1)];
        ring_ = std::move(ring);
        capacity_ = capacity;
        head_ = 0;
        return true;
    }
    std::unique_ptr<T[]> ring_;
    size_t capacity_ = 0; // a power of two, or 0
    size_t head_ = 0;
    size_t size_ = 0;
};

} // namespace dtrain::tp
