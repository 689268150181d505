// Keeps descriptors 0, 1 and 2 free for the program: daemons close them, and may later open their
// log there.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

namespace dtrain::tp {

// While an object lives, descriptors that other code opens do not become 0, 1 or 2: network
// libraries and libc do not avoid them. Free ones are occupied by a descriptor that cannot be
// written to, so that writing fails as before. The state is that of one shared object. Any thread.
class StandardDescriptors {
  public:
    StandardDescriptors() {
        const Turn turn;
        users_++;
        occupy_free();
    }
    ~StandardDescriptors() {
        const Turn turn;
        if (users_ > 0 && --users_ == 0) free_all(); // zero in a child that was forked meanwhile
    }
    StandardDescriptors(const StandardDescriptors &) = delete;
    StandardDescriptors &operator=(const StandardDescriptors &) = delete;

    // Replaces close(fd) for a standard descriptor that the library held for a moment: during that
    // time it could not be occupied.
    static void leave(int fd) {
        const Turn turn;
        if (users_ == 0 || !replace(fd)) ::close(fd);
    }
    // For a forked child, which does not need the descriptors that its parent occupies.
    static void forget() {
        turn_ = false;
        users_ = 0;
        free_all();
    }

  private:
    // A spinlock that a child can release, whichever thread held it in the parent.
    struct Turn {
        Turn() {
            while (turn_.exchange(true, std::memory_order_acquire)) sched_yield();
        }
        ~Turn() { turn_.store(false, std::memory_order_release); }
    };

    static int useless() { return ::open("/dev/null", O_PATH | O_CLOEXEC); }
    // Occupies all free ones: each open() gets the lowest free number.
    static void occupy_free() {
        for (int fd = useless(); fd >= 0; fd = useless()) {
            if (fd > 2) {
                ::close(fd);
                return;
            }
            occupied_[fd] = true;
        }
    }
    static bool replace(int fd) {
        const int other = useless();
        if (other < 0) return false;
        occupied_[fd] = dup3(other, fd, O_CLOEXEC) == fd;
        if (other > 2)
            ::close(other);
        else
            occupied_[other] = true;
        return occupied_[fd];
    }
    static void free_all() {
        for (int fd = 0; fd < 3; fd++) {
            // Unless the program has opened something else there meanwhile.
            const int flags = occupied_[fd] ? fcntl(fd, F_GETFL) : -1;
            if (flags >= 0 && (flags & O_PATH) != 0) ::close(fd);
            occupied_[fd] = false;
        }
    }

    static inline constinit std::atomic<bool> turn_ = false;
    static inline constinit int users_ = 0;
    static inline constinit bool occupied_[3] = {};
};

} // namespace dtrain::tp
