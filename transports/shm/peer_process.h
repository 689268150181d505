// The process at the other end of a connection, whose memory the kernel copies from and to.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "shm/messages.h"
#include "shm/socket.h"

#include <sys/types.h>

namespace dtrain::shm {

// Whether the kernel allows that (the same user, ptrace_scope, a container's seccomp filter) and
// knows the process under a number of ours (pid namespaces), only trying tells.
class PeerProcess {
  public:
    // Out of reach unless `expected` lies at `address` of the process at the socket's other end.
    bool find(const Fd &fd, uint64_t address, const Nonce &expected);
    bool is_in_reach() const { return pid_ > 0; }
    // All of it, or false: the process or its memory there is gone, or may not be touched any more.
    bool read(void *to, uint64_t from, uint64_t bytes) const;
    bool write(uint64_t to, const void *from, uint64_t bytes) const;

  private:
    pid_t pid_ = 0;
};

} // namespace dtrain::shm
