// Identifies the running machine and network namespace.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/host/host.h"

#include "base/fd.h"

#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dtrain::cluster {

std::string host_identity() {
    char boot[37] = ""; // a uuid
    const Fd fd(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
    ssize_t n = fd ? read(fd.get(), boot, sizeof boot - 1) : -1;
    std::string out(boot, n > 0 ? size_t(n) : 0);
    char name[65] = "";
    if (out.empty() && gethostname(name, sizeof name - 1) == 0) out = name;
    struct stat net {};
    if (stat("/proc/self/ns/net", &net) == 0) {
        out += '/';
        out += std::to_string(net.st_ino);
    }
    return out;
}

} // namespace dtrain::cluster
