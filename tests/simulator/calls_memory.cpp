// Allocations, which fail now and then in a process that starves.
// SPDX-License-Identifier: Apache-2.0
#include "libc_memory.h"
#include "real.h"
#include "scheduler.h"

#include <cerrno>
#include <cstdlib>
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

INSTEAD void *malloc(size_t bytes) noexcept { return fails() ? nullptr : __libc_malloc(bytes); }

INSTEAD void *calloc(size_t count, size_t bytes) noexcept {
    return fails() ? nullptr : __libc_calloc(count, bytes);
}

INSTEAD void *realloc(void *piece, size_t bytes) noexcept {
    return fails() ? nullptr : __libc_realloc(piece, bytes);
}

INSTEAD void *memalign(size_t border, size_t bytes) noexcept {
    return fails() ? nullptr : __libc_memalign(border, bytes);
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
