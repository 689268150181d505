// Implements the disk interface with system calls.
// SPDX-License-Identifier: Apache-2.0
#include "data/disk.h"

#include "base/fd.h"
#include "base/output_file.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dtrain::data {
namespace {

int result(int returned) { return returned < 0 ? -errno : returned; }

class SystemDisk final : public Disk {
  public:
    int create(const char *path) override {
        return result(Descriptors::own(
            ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666)));
    }
    int64_t write(int fd, const void *data, size_t size) override {
        ssize_t n = -1;
        do n = ::write(fd, data, size);
        while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : n;
    }
    int sync(int fd) override { return result(fsync(fd)); }
    int close(int fd) override { return result(Descriptors::close(fd)); }
    int rename(const char *from, const char *to) override { return result(::rename(from, to)); }
    int remove(const char *path) override { return result(unlink(path)); }
    int make_folder(const char *path) override { return result(mkdir(path, 0777)); }
    int remove_folder(const char *path) override { return result(rmdir(path)); }
    int sync_folder(const char *path) override { return dtrain::sync_folder(path); }
};

constinit SystemDisk disk;

} // namespace

Disk &system_disk() { return disk; }

} // namespace dtrain::data
