// Reads one regular file from start to end, buffered.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/fd.h"
#include "base/status.h"

#include <cstdint>
#include <memory>
#include <string>

namespace dtrain::data {

// Not thread-safe. The file is not mapped, so that a file that shrinks is an error, not a SIGBUS.
class InputFile {
  public:
    InputFile() = default;
    ~InputFile() { close(); }
    InputFile(const InputFile &) = delete;
    InputFile &operator=(const InputFile &) = delete;

    // Closes a file that was open before; the buffer is kept.
    Status open(const std::string &path);
    void close();

    bool is_open() const { return bool(fd_); }
    uint64_t offset() const { return offset_; }
    uint64_t remaining() const {
        return size_ - offset_;
    } // by the size that the file had when
      // opened

    // Takes the next `size` bytes, size <= remaining(), in one piece; valid until the next call.
    Status take(size_t size, const uint8_t *&data);
    // Skips `size` bytes, size <= remaining(), without reading what is not in the buffer yet.
    void advance(uint64_t size);

  private:
    Status fill(size_t size);
    Status grow(size_t size);

    Fd fd_;
    uint64_t size_ = 0;
    uint64_t offset_ = 0; // of the next byte to return
    std::unique_ptr<uint8_t[]> buffer_;
    size_t capacity_ = 0;        // of the buffer, which grows to the largest piece taken
    size_t begin_ = 0, end_ = 0; // the part of the buffer that was read and not returned yet
};

} // namespace dtrain::data
