// Writes one TFRecord file, which appears under its name only when it is complete.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/fd.h"
#include "base/status.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dtrain::data {

// Not thread-safe.
class Writer {
  public:
    Writer() = default;
    ~Writer() { discard(); }
    Writer(const Writer &) = delete;
    Writer &operator=(const Writer &) = delete;

    // Creates a file with a temporary name beside `path`.
    Status open(const char *path);
    // A failure is final: the file will not be written.
    Status append(std::span<const uint8_t> record);
    // Makes the file durable, then gives it its name. On failure nothing is left behind.
    Status close();
    // Drops the file without changing it, for a forked child.
    void disown();

  private:
    Status put(const void *data, size_t size);
    Status flush();
    Status write_all(const uint8_t *data, size_t size);
    Status commit();
    void discard();

    Fd fd_;
    std::string path_, temporary_; // temporary_ is empty if there is nothing to remove
    std::vector<uint8_t> buffer_;
    Status failure_ = DTRAIN_OK;
    std::string failure_text_;
};

} // namespace dtrain::data
