// Whether the kernel copies memory from process to process here.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "check.h"

#include <sys/uio.h>
#include <unistd.h>

// Not where a container's seccomp filter forbids it.
inline void skip_without_kernel_copies() {
    char from = 1, to = 0;
    iovec local = {&to, 1}, remote = {&from, 1};
    if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != 1) skip();
}
