// Memory of other processes: the exporter's memfd, opened through /proc.
// SPDX-License-Identifier: Apache-2.0
#include "fake.h"

#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>

using namespace fakecuda;

namespace {

constexpr uint64_t magic = 0xFA4EC0DAFA4EC0DA;
struct Content {
    uint64_t magic;
    int64_t pid;
    int64_t fd;
    uint64_t bytes, inode;
};
static_assert(sizeof(Content) <= sizeof(IpcHandle));

} // namespace

FAKE_API Result cuIpcGetMemHandle(IpcHandle *handle, Address at) {
    ENTER("cuIpcGetMemHandle", true);
    const std::lock_guard lock(fake().mutex);
    const Allocation *found = find_allocation(at, 1);
    struct stat info;
    if (found == nullptr || found->kind != Kind::allocated || fstat(found->fd, &info) != 0)
        return invalid_value;
    const Content content{magic, getpid(), found->fd, found->bytes, info.st_ino};
    std::memset(handle, 0, sizeof *handle);
    std::memcpy(handle, &content, sizeof content);
    return success;
}

FAKE_API Result cuIpcOpenMemHandle_v2(Address *out, IpcHandle handle, unsigned) {
    ENTER("cuIpcOpenMemHandle_v2", true);
    wait_for_held_streams();
    Content content;
    std::memcpy(&content, &handle, sizeof content);
    if (content.magic != magic) return invalid_value;
    if (content.pid == getpid()) return invalid_context; // a process cannot import from itself
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%ld/fd/%ld", long(content.pid), long(content.fd));
    const int fd = ::open(path, O_RDWR | O_CLOEXEC);
    struct stat info;
    if (fd < 0) return map_failed;
    if (fstat(fd, &info) != 0 || info.st_ino != content.inode ||
        uint64_t(info.st_size) < content.bytes) {
        close(fd);
        return map_failed;
    }
    const Result r =
        map_memory(fd, content.bytes, Kind::imported, device_of(current_context()), out);
    if (r != success) close(fd);
    return r;
}

FAKE_API Result cuMemGetHandleForAddressRange(void *out, Address begin, size_t bytes, int type,
                                              unsigned long long) {
    ENTER("cuMemGetHandleForAddressRange", true);
    const std::lock_guard lock(fake().mutex);
    uintptr_t base = 0;
    const Allocation *found = find_allocation(begin, 1, &base);
    if (type != range_dma_buf || found == nullptr || begin % 4096 != 0 || bytes % 4096 != 0)
        return invalid_value;
    if (begin != base || found->fd < 0) return not_supported; // a memfd begins where it begins
    const int fd = fcntl(found->fd, F_DUPFD_CLOEXEC, 3);
    if (fd < 0) return out_of_memory;
    std::memcpy(out, &fd, sizeof fd);
    return success;
}

FAKE_API Result cuFlushGPUDirectRDMAWrites(int target, int scope) {
    ENTER("cuFlushGPUDirectRDMAWrites", true);
    return target == flush_current_context && scope == flush_to_owner ? success : invalid_value;
}
