// Moves pages into a window's memory and back.
// SPDX-License-Identifier: Apache-2.0
#include "memory/shared_pages.h"

#include "memory/mappings.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace dtrain::memory {
namespace {

uintptr_t page_bytes() { return uintptr_t(sysconf(_SC_PAGESIZE)); }

// Checks that all of [begin, end) is ordinary private memory of this process.
Status check_private(uintptr_t begin, uintptr_t end) {
    uintptr_t reached = begin;
    bool is_private = true;
    bool readable = each_mapping(begin, end, [&](const Mapping &m) {
        is_private = is_private && m.begin <= reached && m.is_private();
        reached = m.end;
    });
    if (!readable) return fail_errno(errno, "sharing memory: reading /proc/self/maps");
    if (is_private && reached >= end) return DTRAIN_OK;
    return fail(DTRAIN_ERR_UNSUPPORTED,
                "share %#zx to %#zx: not all of it is private, readable and writable memory (or it "
                "is shared already); use dtrain_mem_alloc() instead",
                size_t(begin), size_t(end));
}

} // namespace

Status SharedPages::allocate(transport::Device &device, uint64_t bytes,
                             std::unique_ptr<SharedPages> &out) {
    std::unique_ptr<SharedPages> made(new SharedPages(device));
    uint64_t page = page_bytes();
    if (bytes == 0 || bytes > (uint64_t{1} << 48))
        return fail(DTRAIN_ERR_INVALID, "%llu bytes of shared memory: allowed are 1 to 2^48",
                    static_cast<unsigned long long>(bytes));
    made->bytes_ = (bytes + page - 1) / page * page;
    Status s = device.ops().window_create(device.dev(), made->bytes_, sharing_members, 0,
                                          made->handle_, &made->window_);
    if (s != DTRAIN_OK) return s;
    made->address_ = static_cast<uint8_t *>(device.ops().window_address(made->window_));
    // It belongs to the program, so its children get it, too.
    madvise(made->address_, made->bytes_, MADV_DOFORK);
    out = std::move(made);
    return DTRAIN_OK;
}

Status SharedPages::adopt(transport::Device &device, void *address, uint64_t bytes,
                          std::unique_ptr<SharedPages> &out) {
    uintptr_t page = page_bytes(), first = reinterpret_cast<uintptr_t>(address) / page * page;
    uintptr_t end = (reinterpret_cast<uintptr_t>(address) + bytes + page - 1) / page * page;
    if (Status s = check_private(first, end); s != DTRAIN_OK) return s;
    std::unique_ptr<SharedPages> made;
    if (Status s = allocate(device, end - first, made); s != DTRAIN_OK) return s;
    auto *target = reinterpret_cast<uint8_t *>(first);
    std::memcpy(made->address_, target, made->bytes_);
    // An old size of 0 maps shared pages a second time, without needing a descriptor.
    if (mremap(made->address_, 0, made->bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, target) ==
        MAP_FAILED)
        return fail_errno(errno, "sharing memory: mremap");
    // Avoids page faults later, where the kernel has it.
    madvise(target, made->bytes_, MADV_POPULATE_WRITE);
    made->adopted_ = true;
    made->target_ = target;
    out = std::move(made);
    return DTRAIN_OK;
}

// Restores only pages that are still there: the program may have unmapped them and mapped something
// else.
void SharedPages::give_back() {
    auto window = reinterpret_cast<uintptr_t>(address_);
    Mapping own{};
    each_mapping(window, window + 1, [&](const Mapping &m) { own = m; });
    auto begin = reinterpret_cast<uintptr_t>(target_), end = begin + bytes_;
    std::vector<Mapping> ours;
    each_mapping(begin, end, [&](const Mapping &m) {
        if (m.same_file(own)) ours.push_back(m);
    });
    for (const Mapping &m : ours) {
        uintptr_t from = std::max(m.begin, begin), to = std::min(m.end, end);
        void *fresh =
            mmap(nullptr, to - from, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (fresh == MAP_FAILED) continue; // then the pages stay shared, which does no harm
        std::memcpy(fresh, address_ + (from - begin), to - from);
        mremap(fresh, to - from, to - from, MREMAP_MAYMOVE | MREMAP_FIXED,
               reinterpret_cast<void *>(from));
    }
}

SharedPages::~SharedPages() {
    if (adopted_) give_back();
    if (window_ != nullptr) device_.ops().window_free(window_);
}

} // namespace dtrain::memory
