// Records the descriptors that the library has opened in this process, so that a forked child
// closes them. The child does not use them, and while it held them, the end of this process would
// not end its connections nor free its ports.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/standard_descriptors.h"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

namespace dtrain::tp {

// The descriptors of one shared object. Any thread.
class Descriptors {
  public:
    // Records a descriptor that was just opened. Returns it, or -1 with errno, as if it had not
    // been opened. Never returns 0, 1 or 2: programs that have closed these, as daemons do, may
    // open others there at any time.
    static int own(int fd) {
        if (fd >= 0 && fd < 3) {
            const int higher = fcntl(fd, F_DUPFD_CLOEXEC, 3), error = errno;
            StandardDescriptors::leave(fd);
            errno = error;
            fd = higher;
        }
        if (fd >= 0) mark(fd);
        return fd;
    }
    // Marks a descriptor that is owned by another part of the process but must not stay open in a
    // child either.
    static void mark(int fd) {
        watch_forks();
        if (fd >= most) return;
        for (int seen = end_; fd >= seen && !end_.compare_exchange_weak(seen, fd + 1);) {
        }
        marks_[fd / 64] |= bit(fd);
    }
    static void unmark(int fd) {
        if (fd < most) marks_[fd / 64] &= ~bit(fd);
    }
    // Returns what close() returns. The descriptor is unmarked before it is closed, since
    // afterwards another thread may get the same number.
    static int close(int fd) {
        unmark(fd);
        return ::close(fd);
    }
    // How often this process was forked since it loaded this code. Descriptors opened before that
    // do not exist in the child any more.
    static uint32_t generation() { return generation_.load(std::memory_order_relaxed); }

  private:
    static constexpr int most = 1 << 20; // Linux's limit unless an administrator raises it
    static uint64_t bit(int fd) { return uint64_t{1} << fd % 64; }

    static void watch_forks() {
        if (watching_.load(std::memory_order_relaxed)) return;
        // Registering twice does no harm.
        if (pthread_atfork(nullptr, nullptr, &Descriptors::close_all) == 0) watching_ = true;
    }
    static void close_all() {
        generation_.fetch_add(1, std::memory_order_relaxed);
        const int error = errno;
        StandardDescriptors::forget();
        for (int word = 0; word * 64 < end_; word++)
            for (uint64_t marks = marks_[word].exchange(0); marks != 0; marks &= marks - 1)
                ::close(word * 64 + __builtin_ctzll(marks));
        errno = error;
    }

    static inline constinit std::atomic<uint64_t> marks_[most / 64] = {};
    // One more than the highest marked descriptor.
    static inline constinit std::atomic<int> end_ = 0;
    static inline constinit std::atomic<uint32_t> generation_ = 0;
    static inline constinit std::atomic<bool> watching_ = false;
};

} // namespace dtrain::tp
