// Zeroed memory for a shard: 64-byte aligned, on huge pages where that is worth it.
//
// What messages leave from, or come into, is registered with the transports once. Who drops the
// last reference to such a buffer, or gives it other memory, holds the agent's lock: so the thread
// that writes checkpoints has copies, which let go of the shard's own under that lock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "memory/registration.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace dtrain::ps {

class Buffer {
  public:
    Buffer() = default;
    ~Buffer() { reset(); }
    Buffer(Buffer &&other) noexcept { swap(other); }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    Buffer &operator=(Buffer &&other) noexcept {
        swap(other);
        return *this;
    }
    void swap(Buffer &other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        std::swap(mapped_, other.mapped_);
        std::swap(registration_, other.registration_);
        std::swap(asked_, other.asked_);
    }

    // small: the first touch of a page, wherever, should cost little.
    enum class Pages : uint8_t { huge, small };
    // False when there is no memory; what was held before is given back first.
    bool allocate(uint64_t bytes, Pages pages = Pages::huge);
    void reset();
    // Any thread, whatever others write there: touches the pages of a range, so that nobody else
    // has to. False: there is no memory for them.
    bool populate(uint64_t at, uint64_t bytes) const;
    // The contents are of no use any more: the system may take the memory until it is written
    // again. False: it cannot.
    bool lend() const;
    // Under the agent's lock, whose devices these are.
    void register_once(std::span<const std::unique_ptr<transport::Device>> devices) const;
    bool empty() const { return data_ == nullptr; }
    uint64_t bytes() const { return bytes_; } // that it takes
    char *at(uint64_t byte) const { return static_cast<char *>(data_) + byte; }

  private:
    void *data_ = nullptr;
    size_t bytes_ = 0;
    bool mapped_ = false; // not from the heap
    mutable std::unique_ptr<memory::Registration> registration_;
    mutable bool asked_ = false; // whether there is one or not
};

} // namespace dtrain::ps
