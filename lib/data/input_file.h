// The bytes of one regular file from start to end, buffered.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/fd.h"
#include "base/status.h"

#include <cstdint>
#include <memory>
#include <string>

namespace dtrain::data {

// Not thread-safe. Never mapped: a file that shrinks meanwhile is an error, not a SIGBUS.
class InputFile {
  public:
    InputFile() = default;
    ~InputFile() { close(); }
    InputFile(const InputFile &) = delete;
    InputFile &operator=(const InputFile &) = delete;

    // Closes the file before, if any; the buffer is kept.
    Status open(const std::string &path);
    void close();

    bool is_open() const { return bool(fd_); }
    uint64_t offset() const { return offset_; }
    uint64_t remaining() const { return size_ - offset_; } // by the size the file had when opened

    // The next `size` bytes, size <= remaining(), in one piece; valid until the next call.
    Status take(size_t size, const uint8_t *&data);
    // Goes on `size` bytes, size <= remaining(), without reading what is not in the buffer yet.
    void advance(uint64_t size);

  private:
    Status fill(size_t size);
    Status grow(size_t size);

    Fd fd_;
    uint64_t size_ = 0;
    uint64_t offset_ = 0; // of the next byte to hand out
    std::unique_ptr<uint8_t[]> buffer_;
    size_t capacity_ = 0;        // of the buffer, which grows to the largest piece taken
    size_t begin_ = 0, end_ = 0; // what of the buffer is read and not handed out yet
};

} // namespace dtrain::data
