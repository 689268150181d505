// Allocates buffers on the heap, or on pages by mmap().
// SPDX-License-Identifier: Apache-2.0
#include "ps/table/buffer.h"

#include <cerrno>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <utility>

namespace dtrain::ps {
namespace {

constexpr size_t huge_page = 2 << 20, page = 4096, line = 64;

} // namespace

bool Buffer::allocate(uint64_t bytes, Pages pages) {
    reset();
    if (bytes > SIZE_MAX / 2) return false;
    if (bytes < huge_page) {
        size_t rounded = (bytes + line) / line * line; // never zero
        data_ = ::operator new (rounded, std::align_val_t{line}, std::nothrow);
        if (data_ == nullptr) return false;
        std::memset(data_, 0, rounded);
        bytes_ = rounded;
        return true;
    }
    // The system provides zeroed pages on first touch. One huge page more than needed is mapped, so
    // that the start can be moved to a huge-page boundary; the excess is unmapped again.
    size_t wanted = (bytes + huge_page - 1) / huge_page * huge_page;
    void *map = mmap(nullptr, wanted + huge_page, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) return false;
    size_t skip = (huge_page - reinterpret_cast<uintptr_t>(map) % huge_page) % huge_page;
    char *start = static_cast<char *>(map) + skip;
    if (skip > 0) munmap(map, skip);
    munmap(start + wanted, huge_page - skip);
    // Only advice: if the system ignores it, its configured page size applies.
    madvise(start, wanted, pages == Pages::huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    data_ = start;
    bytes_ = wanted;
    mapped_ = true;
    return true;
}

bool Buffer::populate(uint64_t at, uint64_t bytes) const {
    if (!mapped_) return true;
    const uint64_t first = at / page * page;
    int error = EINTR;
    while (error == EINTR)
        error = madvise(this->at(first), at + bytes - first, MADV_POPULATE_WRITE) != 0 ? errno : 0;
    // Linux before 5.14 does not know this advice, and a sandbox may refuse it; then the first
    // write to each page allocates it.
    return error != ENOMEM && error != EFAULT;
}

bool Buffer::lend() const { return !mapped_ || madvise(data_, bytes_, MADV_FREE) == 0; }

void Buffer::register_once(std::span<const std::unique_ptr<transport::Device>> devices) const {
    if (std::exchange(asked_, true) || empty()) return;
    registration_ = memory::Registration::make_own(devices, data_, bytes_);
}

void Buffer::reset() {
    registration_.reset();
    asked_ = false;
    if (mapped_)
        munmap(data_, bytes_);
    else
        ::operator delete (data_, std::align_val_t{line});
    data_ = nullptr;
    bytes_ = 0;
    mapped_ = false;
}

} // namespace dtrain::ps
