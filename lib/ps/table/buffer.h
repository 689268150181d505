// Zeroed memory for a shard: 64-byte aligned, on huge pages where that is worth it.
//
// A buffer that messages are sent from or received into is registered with the transports once.
// Dropping the last reference to such a buffer, or allocating it anew, needs the agent's lock.
// Therefore the thread that writes checkpoints works on copies, which release the shard's buffers
// under that lock.
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

    // small: for sparse access, where the first touch of a page must be cheap.
    enum class Pages : uint8_t { huge, small };
    // Frees the previous memory first. False: there is no memory.
    bool allocate(uint64_t bytes, Pages pages = Pages::huge);
    void reset();
    // Allocates the pages of a range ahead of their first use. Any thread may call it, also while
    // other threads write to the range. False: there is no memory for the pages.
    bool populate(uint64_t at, uint64_t bytes) const;
    // Declares the contents obsolete: the system may reclaim the memory until it is written again.
    // False: the system cannot reclaim it.
    bool lend() const;
    // Registers the buffer with the agent's devices. Needs the agent's lock.
    void register_once(std::span<const std::unique_ptr<transport::Device>> devices) const;
    bool empty() const { return data_ == nullptr; }
    uint64_t bytes() const { return bytes_; } // allocated size, rounded up
    char *at(uint64_t byte) const { return static_cast<char *>(data_) + byte; }

  private:
    void *data_ = nullptr;
    size_t bytes_ = 0;
    bool mapped_ = false; // allocated by mmap(), not on the heap
    mutable std::unique_ptr<memory::Registration> registration_;
    mutable bool asked_ = false; // registration was attempted, with or without success
};

} // namespace dtrain::ps
