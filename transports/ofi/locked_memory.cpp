// Checks how much memory this process may lock: memory that a card accesses must be locked.
// SPDX-License-Identifier: Apache-2.0
#include "ofi/locked_memory.h"

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dtrain::ofi {
namespace {

constexpr uint64_t sensible = 256 << 20; // bytes for the program's memory

bool may_exceed() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
    return !syscall(SYS_capget, &header, data) &&
           data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK);
}

} // namespace

void check_lock_limit(const tp::Host &host, uint64_t own) {
    rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur >= own + sensible || may_exceed())
        return;
    host.log(DTRAIN_LOG_WARN,
             "ofi: this process may lock only %llu MiB of memory, and %llu MiB of them are in use; "
             "larger messages will fail; %s",
             static_cast<unsigned long long>(limit.rlim_cur >> 20),
             static_cast<unsigned long long>(own >> 20), raise_lock_limit);
}

} // namespace dtrain::ofi
