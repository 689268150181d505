// Zeroed memory for a shard: 64-byte aligned, on huge pages where that is worth it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
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
    }

    // False when there is no memory; what was held before is given back first.
    bool allocate(uint64_t bytes);
    void reset();
    bool empty() const { return data_ == nullptr; }
    uint64_t bytes() const { return bytes_; } // that it takes
    char *at(uint64_t byte) const { return static_cast<char *>(data_) + byte; }

  private:
    void *data_ = nullptr;
    size_t bytes_ = 0;
    bool mapped_ = false; // not from the heap
};

} // namespace dtrain::ps
