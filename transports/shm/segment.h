// Memory that processes of one host share. It has no name: it is passed as a file descriptor, and
// vanishes with its last mapping, however its processes end.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/fd.h"
#include "common/host.h"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace dtrain::shm {

using tp::Fd;
using tp::Host;
using Status = dtrain_status_t;

constexpr uint64_t round_up(uint64_t bytes, uint64_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

// One mapping, readable and writable. From 2 MiB on it is aligned to 2 MiB, and huge pages are
// requested.
class Segment {
  public:
    Segment() = default;
    Segment(Segment &&other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    Segment &operator=(Segment &&other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~Segment();

    // Creates zeroed memory of at least `bytes`, all of it allocated, so that a host or folder that
    // is too small for it causes an error here (DTRAIN_ERR_LIMIT) and not a signal later.
    // directory: a folder of a tmpfs or hugetlbfs, or "": anonymous memory whose size is sealed.
    static Status create(const Host &host, uint64_t bytes, const char *directory, Segment &out,
                         Fd &fd_out);
    // Maps a descriptor that a peer sent. DTRAIN_ERR_TRANSPORT unless its size fits `bytes` and (if
    // must_be_sealed) cannot change any more: access to memory that was cut off would raise a
    // signal.
    static Status attach(const Host &host, const Fd &fd, uint64_t bytes, bool must_be_sealed,
                         Segment &out);

    std::byte *data() const { return data_; }
    uint64_t size() const { return size_; }

  private:
    Status map(const Host &host, const Fd &fd, uint64_t size, uint64_t unit);
    Status populate(const Host &host);

    std::byte *data_ = nullptr;
    uint64_t size_ = 0;
};

} // namespace dtrain::shm
