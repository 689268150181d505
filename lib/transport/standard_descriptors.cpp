// SPDX-License-Identifier: Apache-2.0
#include "transport/standard_descriptors.h"

#include "base/fd.h"

#include <fcntl.h>
#include <mutex>
#include <unistd.h>

namespace dtrain::transport {
namespace {

std::mutex mutex;
int users = 0;
uint32_t generation = 0; // that they are of: a forked child has none of them

bool is_free(int fd) { return fcntl(fd, F_GETFD) < 0; }

// Unless the program has put something else there meanwhile.
bool is_ours(int fd) {
    const int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_PATH) != 0;
}

} // namespace

StandardDescriptors::StandardDescriptors() {
    std::lock_guard lock(mutex);
    if (generation != Descriptors::generation()) users = 0;
    generation = Descriptors::generation();
    if (users++ > 0) return;
    for (int fd = 0; fd < 3; fd++) {
        if (!is_free(fd)) continue;
        // The lowest free number. Of no use to anybody: who writes to it fails as before.
        const int opened = ::open("/dev/null", O_PATH | O_CLOEXEC);
        if (opened > 2) ::close(opened);
        if (opened >= 0 && opened <= 2) Descriptors::mark(opened);
    }
}

StandardDescriptors::~StandardDescriptors() {
    std::lock_guard lock(mutex);
    if (generation != Descriptors::generation() || --users > 0) return;
    for (int fd = 0; fd < 3; fd++)
        if (is_ours(fd)) Descriptors::close(fd);
}

} // namespace dtrain::transport
