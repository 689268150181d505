// Which descriptors of this process are ours, so that a forked child closes them: it has no use for
// them, and while it held them the end of this process would not end its connections, nor free its
// ports.
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

// Those of one shared object. Any thread.
class Descriptors {
  public:
    // A descriptor that was just made becomes ours: the one that it returns, or -1 with errno, as
    // if it had not been made. Never 0, 1 or 2: who has closed them, as daemons do, puts others
    // there when it likes.
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
    // Marks one that stays its maker's, but is nothing for a child either.
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
    // What close() returns. Unmarked before it is closed: from then on another thread may get the
    // same number.
    static int close(int fd) {
        unmark(fd);
        return ::close(fd);
    }
    // How often this process was forked since it loaded this. What was opened before, the child has
    // no more.
    static uint32_t generation() { return generation_.load(std::memory_order_relaxed); }

  private:
    static constexpr int most =
        1 << 20; // as many as Linux allows unless an administrator raises it
    static uint64_t bit(int fd) { return uint64_t{1} << fd % 64; }

    static void watch_forks() {
        if (watching_.load(std::memory_order_relaxed)) return;
        // Twice is no harm.
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
    static inline constinit std::atomic<int> end_ = 0; // beyond the highest marked
    static inline constinit std::atomic<uint32_t> generation_ = 0;
    static inline constinit std::atomic<bool> watching_ = false;
};

} // namespace dtrain::tp
