// A file in memory, for decoders that open files by their path.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tests/fuzz/fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

namespace dtrain::fuzz {

class MemoryFile {
  public:
    MemoryFile() : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
        FUZZ_REQUIRE(fd_ >= 0);
        path_ = "/proc/self/fd/" + std::to_string(fd_);
    }
    ~MemoryFile() { close(fd_); }
    MemoryFile(const MemoryFile &) = delete;

    int fd() const { return fd_; }
    const std::string &path() const { return path_; }
    Bytes content() const { // as others have written it
        Bytes bytes(size_t(lseek(fd_, 0, SEEK_END)));
        FUZZ_REQUIRE(pread(fd_, bytes.data(), bytes.size(), 0) == ssize_t(bytes.size()));
        return bytes;
    }
    void assign(const uint8_t *data, size_t size) {
        FUZZ_REQUIRE(ftruncate(fd_, 0) == 0 && pwrite(fd_, data, size, 0) == ssize_t(size));
    }

  private:
    int fd_;
    std::string path_;
};

} // namespace dtrain::fuzz
