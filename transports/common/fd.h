// A file descriptor that closes itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/descriptors.h"

#include <utility>

namespace dtrain::tp {

// Every descriptor that the library opens is held by an Fd from the start: it is never 0, 1 or 2,
// and it is closed in a forked child.
class Fd {
  public:
    Fd() = default;
    explicit Fd(int fd) : fd_(Descriptors::own(fd)) {} // < 0: empty; errno has the reason
    Fd(Fd &&other) noexcept : fd_(std::exchange(other.fd_, -1)), generation_(other.generation_) {}
    Fd &operator=(Fd &&other) noexcept {
        std::swap(fd_, other.fd_);
        std::swap(generation_, other.generation_);
        return *this;
    }
    ~Fd() { reset(); }
    void reset() { close(); }
    // Returns what close() returns.
    int close() {
        const int fd = std::exchange(fd_, -1);
        if (fd < 0 || generation_ != Descriptors::generation()) return 0;
        return Descriptors::close(fd);
    }
    int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }

  private:
    int fd_ = -1;
    uint32_t generation_ = Descriptors::generation();
};

// While it lives, keeps a descriptor that the library does not own from children, too.
class Unshared {
  public:
    Unshared() = default;
    explicit Unshared(int fd) : fd_(fd) { Descriptors::mark(fd); }
    Unshared(Unshared &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Unshared &operator=(Unshared &&other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Unshared() {
        if (fd_ >= 0) Descriptors::unmark(fd_);
    }

  private:
    int fd_ = -1;
};

} // namespace dtrain::tp
