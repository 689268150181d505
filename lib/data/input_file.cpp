// Reads a file through a buffer that grows as needed.
// SPDX-License-Identifier: Apache-2.0
#include "data/input_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/stat.h>
#include <unistd.h>

namespace dtrain::data {
namespace {
constexpr size_t buffer_size = 256 << 10;
}

Status InputFile::open(const std::string &path) {
    close();
    // Non-blocking matters only for opening a FIFO, which is refused below.
    fd_ = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!fd_) return fail_errno(errno, "cannot open");
    struct stat st;
    if (fstat(fd_.get(), &st) != 0) return fail_errno(errno, "cannot stat");
    if (!S_ISREG(st.st_mode)) return fail(DTRAIN_ERR_UNSUPPORTED, "it is not a regular file");
    size_ = uint64_t(st.st_size);
    posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_SEQUENTIAL); // a hint: failure changes nothing
    return DTRAIN_OK;
}

void InputFile::close() {
    fd_.reset();
    size_ = offset_ = 0;
    begin_ = end_ = 0;
}

Status InputFile::take(size_t size, const uint8_t *&data) {
    if (end_ - begin_ < size)
        if (Status s = fill(size); s != DTRAIN_OK) return s;
    data = buffer_.get() + begin_;
    begin_ += size;
    offset_ += size;
    return DTRAIN_OK;
}

void InputFile::advance(uint64_t size) {
    begin_ += size_t(std::min<uint64_t>(size, end_ - begin_));
    offset_ += size;
}

// Reads until `size` bytes are in the buffer, and as many more as fit.
Status InputFile::fill(size_t size) {
    if (capacity_ < size)
        if (Status s = grow(size); s != DTRAIN_OK) return s;
    if (begin_ < end_) std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    while (end_ < size) {
        const ssize_t n =
            pread(fd_.get(), buffer_.get() + end_, capacity_ - end_, off_t(offset_ + end_));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_errno(errno, "cannot read");
        if (n == 0)
            return fail(DTRAIN_ERR_CORRUPT, "the file became shorter, from %llu to %llu bytes",
                        static_cast<unsigned long long>(size_),
                        static_cast<unsigned long long>(offset_ + end_));
        end_ += size_t(n);
    }
    return DTRAIN_OK;
}

Status InputFile::grow(size_t size) {
    const size_t capacity = std::max(size, buffer_size);
    std::unique_ptr<uint8_t[]> fresh(new (std::nothrow) uint8_t[capacity]);
    if (fresh == nullptr)
        return fail(DTRAIN_ERR_NO_MEMORY, "no memory for a buffer of %zu bytes", capacity);
    if (begin_ < end_) std::memcpy(fresh.get() + begin_, buffer_.get() + begin_, end_ - begin_);
    buffer_ = std::move(fresh);
    capacity_ = capacity;
    return DTRAIN_OK;
}

} // namespace dtrain::data
