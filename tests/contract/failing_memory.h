// The program's malloc() and mmap(), of which one call, or all from one on, can be made to fail;
// and what they gave that was not freed. For one source file of a program: it defines them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "libc_memory.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace failing_memory {

inline constinit std::atomic<bool> counts{false};
inline constinit std::atomic<int64_t> calls{0};            // since counts was set
inline constinit std::atomic<int64_t> first{-1}, last{-1}; // that fail

// What was allocated meanwhile and not freed yet.
class Living {
  public:
    void add(void *piece) {
        std::lock_guard held(*this);
        for (size_t i = home(piece), n = 0; n < places; i = (i + 1) % places, n++)
            if (pieces_[i] == nullptr || pieces_[i] == gone()) {
                pieces_[i] = piece;
                count++;
                return;
            }
    }
    void remove(void *piece) {
        std::lock_guard held(*this);
        for (size_t i = home(piece), n = 0; n < places && pieces_[i] != nullptr;
             i = (i + 1) % places, n++)
            if (pieces_[i] == piece) {
                pieces_[i] = gone();
                count--;
                return;
            }
    }
    int64_t count = 0;
    void lock() {
        while (busy_.test_and_set(std::memory_order_acquire)) {
        }
    }
    void unlock() { busy_.clear(std::memory_order_release); }

  private:
    static constexpr size_t places = 1 << 18;
    static size_t home(void *piece) {
        return (reinterpret_cast<uintptr_t>(piece) >> 4) * 0x9e3779b97f4a7c15u % places;
    }
    static void *gone() { return reinterpret_cast<void *>(1); }
    void *pieces_[places] = {};
    std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
};
inline constinit Living living;

inline bool fails() {
    if (!counts.load(std::memory_order_relaxed)) return false;
    const int64_t n = calls++;
    return n >= first && n <= last;
}
inline void *given(void *piece) {
    if (piece != nullptr && counts.load(std::memory_order_relaxed)) living.add(piece);
    return piece;
}
inline void *none() {
    errno = ENOMEM;
    return nullptr;
}

// From here on the calls from `from` to `to` fail.
inline void begin(int64_t from, int64_t to) {
    calls = 0;
    first = from;
    last = to;
    counts = true;
}
inline void succeed() { first = last = -1; } // those that follow
inline void end() { counts = false; }

} // namespace failing_memory

extern "C" {
void *malloc(size_t bytes) noexcept {
    using namespace failing_memory;
    return fails() ? none() : given(__libc_malloc(bytes));
}
void *calloc(size_t count, size_t bytes) noexcept {
    using namespace failing_memory;
    return fails() ? none() : given(__libc_calloc(count, bytes));
}
void *realloc(void *piece, size_t bytes) noexcept {
    using namespace failing_memory;
    if (fails()) return none();
    void *larger = __libc_realloc(piece, bytes);
    if (larger != nullptr && piece != nullptr) living.remove(piece);
    return given(larger);
}
void *memalign(size_t border, size_t bytes) noexcept {
    using namespace failing_memory;
    return fails() ? none() : given(__libc_memalign(border, bytes));
}
void *aligned_alloc(size_t border, size_t bytes) noexcept { return memalign(border, bytes); }
int posix_memalign(void **piece_p, size_t border, size_t bytes) noexcept {
    void *piece = memalign(border, bytes);
    if (piece == nullptr) return ENOMEM;
    *piece_p = piece;
    return 0;
}
void free(void *piece) noexcept {
    if (piece != nullptr && failing_memory::living.count != 0) failing_memory::living.remove(piece);
    __libc_free(piece);
}
void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
    if (failing_memory::fails()) return failing_memory::none(), MAP_FAILED;
    return reinterpret_cast<void *>(
        syscall(SYS_mmap, address, bytes, protection, flags, fd, offset));
}
}
