// Asks the kernel for huge pages in a thread of its own.
// SPDX-License-Identifier: Apache-2.0
#include "shm/huge_pages.h"

#include "common/signals.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <fcntl.h>
#include <linux/magic.h>
#include <memory>
#include <mutex>
#include <new>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

namespace dtrain::shm {
namespace {

// The caller holds a lock that others need, so it waits no longer than this.
constexpr std::chrono::milliseconds patience{5};

struct Collapse {
    tp::Fd program;
    std::mutex mutex;
    std::condition_variable ended;
    bool is_over = false;
};

std::atomic<bool> one_is_late{false};

// The file of the program, whose first page is mapped, and in the cache once it has been read. Not
// a file in memory, which has no page to drop.
tp::Fd open_program() {
    const auto *first = reinterpret_cast<const volatile char *>(getauxval(AT_PHDR));
    tp::Fd program(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    struct statfs system;
    if (first == nullptr || !program || fstatfs(program.get(), &system) != 0 ||
        system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC)
        return {};
    [[maybe_unused]] const char read = *first;
    return program;
}

// Before it collapses pages, the kernel waits for a thread of its own on each core
// (lru_add_drain_all()). That takes no millisecond, or many seconds where programs keep the cores
// busy, and all that time no thread of this process can map memory. So this waits for the same
// before, which holds up nobody: a page that is mapped cannot be dropped from the cache, but the
// kernel tries it again when all cores have answered. Then they have nothing more to do.
void wait_for_cores(const tp::Fd &program) {
    posix_fadvise(program.get(), 0, sysconf(_SC_PAGESIZE), POSIX_FADV_DONTNEED);
}

// By the time that it comes to it, the mapping may be gone, and another one there: that one has
// huge pages then.
void collapse(std::byte *data, uint64_t size, tp::Fd &&program) {
    const auto its = std::make_shared<Collapse>();
    its->program = std::move(program);
    const auto run = [its, data, size] {
        pthread_setname_np(pthread_self(), "dtrain-pages");
        const auto begun = std::chrono::steady_clock::now();
        wait_for_cores(its->program);
        if (std::chrono::steady_clock::now() - begun < patience) madvise(data, size, MADV_COLLAPSE);
        std::lock_guard lock(its->mutex);
        its->is_over = true;
        one_is_late = false;
        its->ended.notify_one();
    };
    {
        const tp::SignalsHeld held;
        std::thread(run).detach(); // this code stays loaded as long as the process lives
    }
    std::unique_lock lock(its->mutex);
    if (!its->ended.wait_for(lock, patience, [&] { return its->is_over; })) one_is_late = true;
}

} // namespace

// Writes one page of each huge page, for which the kernel allocates the whole huge page: 16 MiB
// then take 0.8 ms, and 12 ms page by page. Without threads or memory there are small pages.
void take_huge_pages(const tp::Fd &fd, std::byte *data, uint64_t size) {
    const uint64_t huge = size / huge_page_size * huge_page_size;
    if (huge == 0 || one_is_late) return;
    tp::Fd program = open_program();
    if (!program) return;
    for (uint64_t at = 0; at < huge; at += huge_page_size)
        if (pwrite(fd.get(), "", 1, static_cast<off_t>(at)) != 1) return;
    try {
        collapse(data, huge, std::move(program));
    } catch (const std::system_error &) {
    } catch (const std::bad_alloc &) {
    }
}

} // namespace dtrain::shm
