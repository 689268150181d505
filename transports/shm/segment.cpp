// Creates, maps and allocates shared memory.
// SPDX-License-Identifier: Apache-2.0
#include "shm/segment.h"

#include "common/stream.h"
#include "shm/huge_pages.h"
#include "shm/system_error.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace dtrain::shm {
namespace {

constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

uint64_t page_size() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

// Sizes must be whole pages; on a hugetlbfs, whose pages are its blocks, whole huge pages.
uint64_t unit_of(const Fd &fd, const struct stat &info) {
    struct statfs system;
    bool huge = fstatfs(fd.get(), &system) == 0 && system.f_type == HUGETLBFS_MAGIC;
    return huge ? static_cast<uint64_t>(info.st_blksize) : page_size();
}

Status open_file(const Host &host, const char *directory, Fd &out) {
    if (directory[0] == '\0') {
        out = Fd(memfd_create("dtrain", MFD_CLOEXEC | MFD_ALLOW_SEALING));
        if (!out) return fail_errno(host, errno, "memfd_create");
        return DTRAIN_OK;
    }
    out = Fd(::open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600));
    if (!out)
        return host.fail(DTRAIN_ERR_CONFIG,
                         "shm: cannot create shared memory in the folder \"%s\" (option "
                         "shm.directory), which must be a writable tmpfs or hugetlbfs: %s",
                         directory, std::strerror(errno));
    return DTRAIN_OK;
}

// The first number in a file after `label`; UINT64_MAX if there is none.
uint64_t read_number(const char *path, const char *label) {
    const tp::Stream file = tp::read_stream(path);
    char line[128];
    uint64_t number;
    while (file != nullptr && std::fgets(line, sizeof line, file.get()) != nullptr)
        if (std::strncmp(line, label, std::strlen(label)) == 0)
            return std::sscanf(line + std::strlen(label), "%" SCNu64, &number) == 1 ? number
                                                                                    : UINT64_MAX;
    return UINT64_MAX;
}

// fallocate() of anonymous memory would take more than there is, and the kernel would kill
// processes for it. The current use of a control group says little, since most of it may be cache.
bool is_available(uint64_t bytes) {
    uint64_t kib = read_number("/proc/meminfo", "MemAvailable:");
    if (kib < UINT64_MAX / 1024 && bytes > kib * 1024) return false;
    uint64_t most = read_number("/sys/fs/cgroup/memory.max", "");
    return bytes <= most;
}

// A folder has its own size limit, and small sizes do not matter.
bool may_take(uint64_t size, const char *directory) {
    return directory[0] != '\0' || size < huge_page_size || is_available(size);
}

Status allocate(const Host &host, const Fd &fd, uint64_t size, const char *directory) {
    int error = ENOMEM;
    if (may_take(size, directory)) {
        int rc;
        do rc = fallocate(fd.get(), 0, 0, static_cast<off_t>(size));
        while (rc != 0 && errno == EINTR);
        if (rc == 0) return DTRAIN_OK;
        error = errno;
    }
    if (error != ENOSPC && error != ENOMEM && error != EFBIG && error != EDQUOT)
        return fail_errno(host, error, "fallocate of shared memory");
    if (directory[0] == '\0')
        return host.fail(DTRAIN_ERR_LIMIT,
                         "shm: no room for %llu bytes of shared memory: raise the memory limit of "
                         "this host or container, or ask for less (option window.bytes)",
                         static_cast<unsigned long long>(size));
    return host.fail(DTRAIN_ERR_LIMIT,
                     "shm: the folder \"%s\" (option shm.directory) has no room for %llu bytes of "
                     "shared memory: make it larger, lower window.bytes, or leave shm.directory "
                     "empty, which needs no folder",
                     directory, static_cast<unsigned long long>(size));
}

} // namespace

Segment::~Segment() {
    if (data_ != nullptr) munmap(data_, size_);
}

Status Segment::create(const Host &host, uint64_t bytes, const char *directory, Segment &out,
                       Fd &fd_out) {
    Fd fd;
    Status status = open_file(host, directory, fd);
    if (status != DTRAIN_OK) return status;
    struct stat info;
    if (fstat(fd.get(), &info) != 0) return fail_errno(host, errno, "fstat of shared memory");
    uint64_t unit = unit_of(fd, info);
    if (bytes > INT64_MAX - unit)
        return host.fail(DTRAIN_ERR_LIMIT, "shm: %llu bytes of shared memory are too many",
                         static_cast<unsigned long long>(bytes));
    uint64_t size = round_up(bytes, unit);
    if (ftruncate(fd.get(), static_cast<off_t>(size)) != 0)
        return fail_errno(host, errno, "setting the size of shared memory");
    status = out.map(host, fd, size, unit);
    if (status != DTRAIN_OK) return status;
    if (may_take(size, directory)) take_huge_pages(fd, out.data_, size);
    status = allocate(host, fd, size, directory);
    if (status == DTRAIN_OK) status = out.populate(host);
    if (status == DTRAIN_OK && directory[0] == '\0' && fcntl(fd.get(), F_ADD_SEALS, seals) != 0)
        status = fail_errno(host, errno, "sealing the size of shared memory");
    if (status == DTRAIN_OK)
        fd_out = std::move(fd);
    else
        out = Segment();
    return status;
}

Status Segment::attach(const Host &host, const Fd &fd, uint64_t bytes, bool must_be_sealed,
                       Segment &out) {
    struct stat info;
    if (!fd || fstat(fd.get(), &info) != 0)
        return host.fail(DTRAIN_ERR_TRANSPORT, "shm: the peer sent no shared memory");
    uint64_t size = static_cast<uint64_t>(info.st_size);
    uint64_t unit = unit_of(fd, info);
    if (!S_ISREG(info.st_mode) || bytes > size || size - bytes >= unit)
        return host.fail(DTRAIN_ERR_TRANSPORT,
                         "shm: the peer sent %llu bytes of shared memory, but %llu were agreed",
                         static_cast<unsigned long long>(size),
                         static_cast<unsigned long long>(bytes));
    int have = fcntl(fd.get(), F_GET_SEALS);
    if (must_be_sealed && (have < 0 || (have & seals) != seals))
        return host.fail(DTRAIN_ERR_TRANSPORT,
                         "shm: the peer sent shared memory whose size is not sealed; set "
                         "shm.directory in all processes or in none");
    Status status = out.map(host, fd, size, unit);
    return status == DTRAIN_OK ? out.populate(host) : status;
}

Status Segment::map(const Host &host, const Fd &fd, uint64_t size, uint64_t unit) {
    const uint64_t alignment = std::max(unit, size < huge_page_size ? 0 : huge_page_size);
    // Reserves enough address space for an aligned start, and unmaps the rest.
    uint64_t spare = alignment > page_size() ? alignment : 0;
    void *room =
        mmap(nullptr, size + spare, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return host.fail(DTRAIN_ERR_LIMIT, "shm: no address space for %llu bytes of shared memory",
                         static_cast<unsigned long long>(size));
    auto start = reinterpret_cast<uintptr_t>(room);
    uintptr_t aligned = round_up(start, alignment);
    auto *data = reinterpret_cast<std::byte *>(aligned);
    if (mmap(data, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd.get(), 0) ==
        MAP_FAILED) {
        int error = errno;
        munmap(room, size + spare);
        return fail_errno(host, error, "mapping shared memory");
    }
    if (aligned != start) munmap(room, aligned - start);
    if (uint64_t rest = spare - (aligned - start)) munmap(data + size, rest);
    // A child of this process does not need it, and would keep it from being freed.
    madvise(data, size, MADV_DONTFORK);
    *this = Segment();
    data_ = data;
    size_ = size;
    return DTRAIN_OK;
}

// Faults all pages in now: later it would cost microseconds per page on a hot path, or raise a
// signal if there is no room. Old kernels cannot do this. Small memory that is allocated may wait:
// many connections carry only a few small messages.
Status Segment::populate(const Host &host) {
    if (size_ < huge_page_size || madvise(data_, size_, MADV_POPULATE_WRITE) == 0 ||
        errno == EINVAL)
        return DTRAIN_OK;
    const auto size = static_cast<unsigned long long>(size_);
    *this = Segment();
    return host.fail(DTRAIN_ERR_LIMIT, "shm: no room for %llu bytes of shared memory", size);
}

} // namespace dtrain::shm
