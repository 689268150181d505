// Files that are written: they are real ones, but a disk may be full for a while, or slow.
// SPDX-License-Identifier: Apache-2.0
#include "files.h"
#include "real.h"
#include "scheduler.h"

#include <cerrno>
#include <cstdarg>
#include <fcntl.h>
#include <unistd.h>

namespace dtrain::simulator {

bool is_on_disk(int fd) {
    return simulated() && fd >= 0 && fd < most_descriptors && own_process().files[fd];
}

void note_closed_file(int fd) {
    if (is_on_disk(fd)) own_process().files[fd] = false;
}

bool disk_refuses() {
    Process &process = own_process();
    if (process.full_until <= world->clock || random_below(process.full_each) != 0) return false;
    errno = ENOSPC;
    return true;
}

void wait_for_disk(const char *call) {
    step(call);
    if (own_process().disk_delay > 0) sleep_until(world->clock + own_process().disk_delay);
}

} // namespace dtrain::simulator

using namespace dtrain::simulator;

INSTEAD int open(const char *path, int flags, ...) {
    const auto real = REAL(open);
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    const bool creates = simulated() && (flags & O_CREAT) != 0;
    if (creates) {
        step("open");
        if (disk_refuses()) return -1;
    }
    const int fd = real(path, flags, mode);
    if (creates && fd >= 0 && fd < most_descriptors) own_process().files[fd] = true;
    return fd;
}

INSTEAD int fsync(int fd) {
    const auto real = REAL(fsync);
    if (is_on_disk(fd)) wait_for_disk("fsync");
    return simulated() ? 0 : real(fd); // the real disk outlives every life
}

INSTEAD int rename(const char *from, const char *to) noexcept {
    const auto real = REAL(rename);
    if (simulated()) step("rename");
    return real(from, to);
}

INSTEAD int mkdir(const char *path, mode_t mode) noexcept {
    const auto real = REAL(mkdir);
    if (simulated()) {
        step("mkdir");
        if (disk_refuses()) return -1;
    }
    return real(path, mode);
}
