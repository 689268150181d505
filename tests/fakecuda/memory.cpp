// Memory: each allocation is a memfd, mapped where only the "hardware" looks.
// SPDX-License-Identifier: Apache-2.0
#include "fake.h"

#include <cstring>
#include <sys/mman.h>
#include <vector>

namespace fakecuda {
namespace {

constexpr size_t page = 4096;
size_t whole_pages(size_t bytes) { return (bytes + page - 1) / page * page; }

template <class Map>
const typename Map::mapped_type *find_in(const Map &map, uintptr_t p, size_t bytes,
                                         uintptr_t *base) {
    auto it = map.upper_bound(p);
    if (it == map.begin()) return nullptr;
    --it;
    if (p - it->first >= it->second.bytes || bytes > it->second.bytes - (p - it->first))
        return nullptr;
    if (base != nullptr) *base = it->first;
    return &it->second;
}

} // namespace

const Allocation *find_allocation(uintptr_t p, size_t bytes, uintptr_t *base) {
    const std::lock_guard lock(fake().mutex);
    return find_in(fake().allocations, p, bytes, base);
}
const Pinned *find_pinned(uintptr_t p, size_t bytes, uintptr_t *base) {
    const std::lock_guard lock(fake().mutex);
    return find_in(fake().pinned, p, bytes, base);
}

void *reach(uintptr_t p, size_t bytes, const char *what) {
    if (fake().is_device(p)) {
        if (find_allocation(p, bytes) == nullptr) {
            complain("%s: %zu bytes at %p are in no allocation", what, bytes,
                     reinterpret_cast<void *>(p));
            fault(illegal_address);
            return nullptr;
        }
        return reinterpret_cast<void *>(p + reserved);
    }
    return reinterpret_cast<void *>(p);
}

Result map_memory(int fd, size_t bytes, Kind kind, int device, Address *out) {
    const std::lock_guard lock(fake().mutex);
    const size_t size = whole_pages(bytes);
    if (size > reserved || fake().used + size + page > reserved) return out_of_memory;
    const uintptr_t at = fake().base + fake().used;
    void *seen = reinterpret_cast<void *>(at + reserved);
    if (mmap(seen, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
        return out_of_memory;
    fake().used += size + page; // addresses are not used again, and a page between catches overruns
    fake().allocations[at] = {bytes, fd, kind, device, ++fake().last_id};
    *out = at;
    return success;
}

namespace {

Result allocate(size_t bytes, Kind kind, Address *out) {
    if (bytes == 0) return invalid_value;
    if (bytes > reserved) return out_of_memory;
    const int fd = memfd_create("fakecuda", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, off_t(whole_pages(bytes))) != 0) return out_of_memory;
    const Result r = map_memory(fd, bytes, kind, device_of(current_context()), out);
    if (r == success)
        std::memset(reinterpret_cast<void *>(*out + reserved), 0xA5, bytes);
    else
        close(fd);
    return r;
}

Result unmap(uintptr_t at, bool imported) {
    const std::lock_guard lock(fake().mutex);
    const auto it = fake().allocations.find(at);
    if (it == fake().allocations.end() || (it->second.kind == Kind::imported) != imported)
        return invalid_value;
    const size_t size = whole_pages(it->second.bytes);
    const uintptr_t seen = it->second.kind == Kind::managed ? at : at + reserved;
    mmap(reinterpret_cast<void *>(seen), size, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    if (it->second.fd >= 0) close(it->second.fd);
    fake().allocations.erase(it);
    return success;
}

} // namespace
} // namespace fakecuda

using namespace fakecuda;

// Allocations, imports and pinned ranges.
FAKE_API int fakecuda_count_memory() {
    const std::lock_guard lock(fake().mutex);
    return int(fake().allocations.size() + fake().pinned.size());
}

FAKE_API Result cuMemAlloc_v2(Address *out, size_t bytes) {
    ENTER("cuMemAlloc_v2", true);
    return allocate(bytes, Kind::allocated, out);
}
FAKE_API Result cuMemFree_v2(Address at) {
    ENTER("cuMemFree_v2", true, true);
    wait_for_held_streams();
    return unmap(at, false);
}
FAKE_API Result cuIpcCloseMemHandle(Address at) {
    ENTER("cuIpcCloseMemHandle", true, true);
    wait_for_held_streams();
    return unmap(at, true);
}
// Of a pool, whose memory has no legacy handle.
FAKE_API Result cuMemAllocAsync(Address *out, size_t bytes, Stream) {
    ENTER("cuMemAllocAsync", true);
    return allocate(bytes, Kind::pooled, out);
}
// The host can touch it, too.
FAKE_API Result cuMemAllocManaged(Address *out, size_t bytes, unsigned) {
    ENTER("cuMemAllocManaged", true);
    void *at = mmap(nullptr, whole_pages(bytes), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return out_of_memory;
    const std::lock_guard lock(fake().mutex);
    *out = reinterpret_cast<Address>(at);
    fake().allocations[*out] = {bytes, -1, Kind::managed, device_of(current_context()),
                                ++fake().last_id};
    return success;
}

FAKE_API Result cuMemGetAddressRange_v2(Address *base, size_t *bytes, Address at) {
    ENTER("cuMemGetAddressRange_v2", true);
    const std::lock_guard lock(fake().mutex);
    uintptr_t begin = 0;
    const Allocation *found = find_allocation(at, 1, &begin);
    if (found == nullptr) return invalid_value;
    *base = begin;
    *bytes = found->bytes;
    return success;
}

FAKE_API Result cuMemHostRegister_v2(void *p, size_t bytes, unsigned) {
    ENTER("cuMemHostRegister_v2", true);
    const std::lock_guard lock(fake().mutex);
    const auto at = reinterpret_cast<uintptr_t>(p);
    for (const auto &[base, it] : fake().pinned)
        if (base / page <= (at + bytes - 1) / page && at / page <= (base + it.bytes - 1) / page)
            return already_registered;
    fake().pinned[at] = {bytes, ++fake().last_id};
    return success;
}
FAKE_API Result cuMemHostUnregister(void *p) {
    ENTER("cuMemHostUnregister", true, true);
    wait_for_held_streams();
    const std::lock_guard lock(fake().mutex);
    return fake().pinned.erase(reinterpret_cast<uintptr_t>(p)) == 1 ? success : not_registered;
}
FAKE_API Result cuMemHostGetDevicePointer_v2(Address *out, void *p, unsigned) {
    ENTER("cuMemHostGetDevicePointer_v2", true);
    if (find_pinned(reinterpret_cast<uintptr_t>(p), 1) == nullptr) return invalid_value;
    *out = reinterpret_cast<Address>(p);
    return success;
}

FAKE_API Result cuMemcpyAsync(Address to, Address from, size_t bytes, Stream stream) {
    ENTER("cuMemcpyAsync", true);
    for (const Address p : {to, from})
        if (!fake().is_device(p) && find_pinned(p, bytes) == nullptr &&
            find_allocation(p, bytes) == nullptr)
            complain("an asynchronous copy of pageable memory, which would block");
    return submit(stream, [=] {
        void *dst = reach(to, bytes, "copy to"), *src = reach(from, bytes, "copy from");
        if (dst != nullptr && src != nullptr) std::memcpy(dst, src, bytes);
        return true;
    });
}
FAKE_API Result cuMemsetD8Async(Address to, unsigned char value, size_t bytes, Stream stream) {
    ENTER("cuMemsetD8Async", true);
    return submit(stream, [=] {
        if (void *dst = reach(to, bytes, "memset")) std::memset(dst, value, bytes);
        return true;
    });
}

// Copies of programs, which wait.
// Whether functions that are called synchronous are so.
static bool waits() {
    return (fake().flags[device_of(current_context())] & context_sync_memops) != 0;
}
static Stream legacy() { return reinterpret_cast<Stream>(stream_legacy); }

FAKE_API Result cuMemcpyHtoD_v2(Address to, const void *from, size_t bytes) {
    ENTER("cuMemcpyHtoD_v2", true);
    constexpr unsigned late_us = 500;
    const auto *data = static_cast<const uint8_t *>(from);
    if (!waits()) // only the default stream knows of it
        return submit(legacy(), [=, copied = std::vector<uint8_t>(data, data + bytes)] {
            usleep(late_us);
            void *dst = reach(to, bytes, "copy to");
            if (dst != nullptr) std::memcpy(dst, copied.data(), bytes);
            return true;
        });
    void *dst = reach(to, bytes, "copy to");
    if (dst != nullptr) std::memcpy(dst, from, bytes);
    return fake().sticky;
}
FAKE_API Result cuMemcpyDtoH_v2(void *to, Address from, size_t bytes) {
    ENTER("cuMemcpyDtoH_v2", true);
    if (!waits()) drain(legacy());
    void *src = reach(from, bytes, "copy from");
    if (src != nullptr) std::memcpy(to, src, bytes);
    return fake().sticky;
}
