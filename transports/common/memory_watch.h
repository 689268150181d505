// Reports which private anonymous memory of this process was unmapped, remapped or discarded, by
// whatever means.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/fd.h"
#include "common/signals.h"
#include "common/stream.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <memory>
#include <mutex>
#include <poll.h>
#include <pthread.h>
#include <string>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dtrain::tp {

// Uses userfaultfd. Its events come before the call that changed the memory returns: the call waits
// until the thread of this class has read the event. Nothing is write-protected and no page fault
// is handled; the mode only makes the kernel report the memory. Whole mappings are watched, since
// parts of a mapping could no longer be remapped together. A child made by fork() is not watched.
//
// The thread takes the lock before it reads, so that another thread that takes the lock after the
// call has returned finds the change noted. Nothing may be allocated or freed under the lock: that
// might unmap memory, and so wait for the thread.
class MemoryWatch {
  public:
    // The watch of this process (a mapping can have only one watcher). nullptr: the kernel refuses;
    // *why tells the reason.
    static std::shared_ptr<MemoryWatch> get(std::string *why) {
        static std::mutex mutex;
        static std::weak_ptr<MemoryWatch> current;
        const std::lock_guard lock(mutex);
        std::shared_ptr<MemoryWatch> watch = current.lock();
        if (watch && watch->pid_ == getpid()) return watch;
        watch.reset(new (std::nothrow) MemoryWatch);
        if (!watch || !watch->open(why)) return nullptr;
        current = watch;
        return watch;
    }
    ~MemoryWatch() {
        if (!thread_ || pid_ != getpid()) return;
        const uint64_t one = 1;
        (void)!write(stop_.get(), &one, sizeof one);
        pthread_join(thread_, nullptr);
    }
    MemoryWatch(const MemoryWatch &) = delete;

    // Changes from now on are reported. False: this memory cannot be watched.
    bool watch(uint64_t start, uint64_t length) {
        const Stream maps = read_stream("/proc/self/maps");
        if (!maps) return false;
        char line[PATH_MAX + 128];
        const uint64_t end = start + length;
        while (start < end && fgets(line, sizeof line, maps.get())) {
            uint64_t from, to, inode;
            char rights[5];
            if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*s %*s %" SCNu64, &from, &to, rights,
                       &inode) != 4)
                return false;
            if (to <= start) continue;
            uffdio_register range{};
            range.range = {from, to - from};
            range.mode = UFFDIO_REGISTER_MODE_WP;
            if (from > start || rights[3] != 'p' || inode != 0 ||
                ioctl(events_.get(), UFFDIO_REGISTER, &range))
                return false;
            start = to;
        }
        return start >= end;
    }

    // The number of changes so far. Cheap.
    uint64_t position() const { return noted_.load(std::memory_order_relaxed); }
    // Calls changed(start, length) for each change since *position. False: memory is changing right
    // now, and the change will be reported later.
    template <class F> bool settle(uint64_t *position, F &&changed) {
        // The kernel refuses this call as invalid, or with EAGAIN while memory changes and the
        // event is not read yet.
        uffdio_writeprotect nothing{};
        const bool changing =
            ioctl(events_.get(), UFFDIO_WRITEPROTECT, &nothing) && errno == EAGAIN;
        std::array<Range, 16> some;
        for (size_t n = some.size(); n == some.size();) {
            n = take(position, some);
            for (size_t i = 0; i < n; i++) changed(some[i].start, some[i].length);
        }
        return !changing;
    }

  private:
    struct Range {
        uint64_t start = 0, length = 0;
    };

    MemoryWatch() = default;

    bool open(std::string *why) {
        // The last feature needs Linux 5.18; older kernels do not count concurrent changes
        // correctly.
        uffdio_api api{};
        api.api = UFFD_API;
        api.features = UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMOVE |
                       UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EXACT_ADDRESS;
        events_ = Fd(int(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY)));
        stop_ = Fd(eventfd(0, EFD_CLOEXEC));
        const bool good = events_ && stop_ && !ioctl(events_.get(), UFFDIO_API, &api) && start();
        if (!good) *why = std::string("userfaultfd: ") + strerror(errno);
        return good;
    }
    bool start() {
        const SignalsHeld held;
        errno = pthread_create(&thread_, nullptr, run, this);
        if (errno) thread_ = 0;
        return !errno;
    }
    static void *run(void *self) {
        static_cast<MemoryWatch *>(self)->read_events();
        return nullptr;
    }
    void read_events() {
        pollfd fds[] = {{events_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
        while (!fds[1].revents) {
            if (poll(fds, 2, -1) < 0 || !fds[0].revents) continue;
            const std::lock_guard lock(mutex_);
            uffd_msg event;
            while (::read(events_.get(), &event, sizeof event) == sizeof event) note(event);
        }
        events_.reset(); // releases threads that wait for this one
    }
    void note(const uffd_msg &event) {
        const auto &gone = event.arg.remove;
        const auto &moved = event.arg.remap;
        const Range range = event.event == UFFD_EVENT_REMAP
                                ? Range{moved.from, moved.len}
                                : Range{gone.start, gone.end - gone.start};
        changes_[noted_++ % changes_.size()] = range;
    }
    size_t take(uint64_t *position, std::array<Range, 16> &out) {
        const std::lock_guard lock(mutex_);
        if (noted_ - *position > changes_.size()) { // some changes were overwritten
            *position = noted_;
            out[0] = {0, UINT64_MAX};
            return 1;
        }
        size_t n = 0;
        while (*position < noted_ && n < out.size())
            out[n++] = changes_[(*position)++ % changes_.size()];
        return n;
    }

    const pid_t pid_ = getpid();
    Fd events_, stop_;
    pthread_t thread_ = 0;
    std::mutex mutex_;
    std::atomic<uint64_t> noted_{0}; // number of changes
    std::array<Range, 1024> changes_;
};

} // namespace dtrain::tp
