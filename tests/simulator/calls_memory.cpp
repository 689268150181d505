// Allocations, which fail now and then in a process that starves, and may have fences.
// SPDX-License-Identifier: Apache-2.0
#include "fenced_memory.h"
#include "libc_memory.h"
#include "real.h"
#include "scheduler.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

using namespace dtrain::simulator;

namespace {

// Small ones of the library come from its reserve then.
bool fails() {
    if (!simulated() || own_process().starves_until <= world->clock) return false;
    if (random_below(own_process().starves_each) != 0) return false;
    errno = ENOMEM;
    return true;
}

} // namespace

INSTEAD void *malloc(size_t bytes) noexcept {
    if (fails()) return nullptr;
    void *piece = FencedMemory::take(bytes);
    return piece != nullptr ? piece : __libc_malloc(bytes);
}

INSTEAD void *calloc(size_t count, size_t bytes) noexcept {
    if (fails()) return nullptr;
    size_t all = 0;
    void *piece = __builtin_mul_overflow(count, bytes, &all) ? nullptr : FencedMemory::take(all);
    return piece != nullptr ? piece : __libc_calloc(count, bytes); // pages are zero
}

INSTEAD void *realloc(void *before, size_t bytes) noexcept {
    if (fails()) return nullptr;
    if (before != nullptr && !FencedMemory::owns(before)) return __libc_realloc(before, bytes);
    void *piece = FencedMemory::take(bytes);
    if (piece == nullptr) piece = __libc_malloc(bytes);
    if (before == nullptr || piece == nullptr) return piece;
    memcpy(piece, before, std::min(bytes, FencedMemory::bytes_of(before)));
    FencedMemory::release(before);
    return piece;
}

INSTEAD void *memalign(size_t border, size_t bytes) noexcept {
    if (fails()) return nullptr;
    void *piece = FencedMemory::take(bytes, border);
    return piece != nullptr ? piece : __libc_memalign(border, bytes);
}

INSTEAD void free(void *piece) noexcept {
    if (FencedMemory::owns(piece))
        FencedMemory::release(piece);
    else
        __libc_free(piece);
}

INSTEAD void *aligned_alloc(size_t border, size_t bytes) noexcept {
    return memalign(border, bytes);
}

INSTEAD int posix_memalign(void **out, size_t border, size_t bytes) noexcept {
    void *piece = memalign(border, bytes);
    if (piece == nullptr) return ENOMEM;
    *out = piece;
    return 0;
}

INSTEAD void *mmap(void *address, size_t bytes, int protection, int flags, int fd,
                   off_t offset) noexcept {
    const auto real = REAL(mmap);
    return fails() ? MAP_FAILED : real(address, bytes, protection, flags, fd, offset);
}
