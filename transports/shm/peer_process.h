// The process at the other end of a connection, whose memory the kernel copies from and to.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "shm/messages.h"
#include "shm/socket.h"

#include <sys/types.h>

namespace dtrain::shm {

// Only trying shows whether the kernel allows that (same user, ptrace_scope, a container's seccomp
// filter) and knows the process by a number that is valid here (pid namespaces).
class PeerProcess {
  public:
    // Out of reach unless `expected` is found at `address` of the process at the socket's other
    // end.
    bool find(const Fd &fd, uint64_t address, const Nonce &expected);
    bool is_in_reach() const { return pid_ > 0; }
    // Copies all of it. False: the process or its memory is gone, or cannot be accessed any more.
    bool read(void *to, uint64_t from, uint64_t bytes) const;
    bool write(uint64_t to, const void *from, uint64_t bytes) const;

  private:
    pid_t pid_ = 0;
};

} // namespace dtrain::shm
