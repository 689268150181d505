// Local sockets with abstract names, which belong to no file system and vanish with their owner.
// Nothing here blocks.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/fd.h"
#include "shm/address.h"

#include <sys/types.h>

namespace dtrain::shm {

using tp::Fd;

// The socket to which peers connect. SOCK_SEQPACKET: a message arrives whole, with its descriptor,
// or not at all.
Status listen_as(const Host &host, const Name &name, Fd &out);
// DTRAIN_ERR_BUSY: too many connections wait to be accepted there; try again.
Status connect_to(const Host &host, const Name &name, Fd &out);
// False: no connection waits. out stays empty if the peer's user is neither this process's user nor
// root.
bool accept_from(const Fd &listener, Fd &out);

// The process at the other end; 0: unknown here.
pid_t peer_pid(const Fd &fd);
// True if the peer's user is this process's user, or root.
bool is_peer_trusted(const Fd &fd);

// pass: a descriptor to send along, or -1. False: not sent; see errno.
bool send_message(const Fd &fd, const void *data, size_t len, int pass = -1);
// Returns the bytes of the next message; 0: the peer is gone; < 0: no message now (or -EMSGSIZE:
// longer than `len`). passed: the descriptor that was sent along.
ssize_t receive_message(const Fd &fd, void *data, size_t len, Fd &passed);

// A datagram socket whose readability wakes its owner. Thread-safe, except open().
class Doorbell {
  public:
    Status open(const Host &host, const Name &name);
    // Wakes the owner of another bell, which may be gone.
    void ring(const Name &name) const;
    bool drain() const; // returns whether it had been rung
    const Fd &fd() const { return fd_; }

  private:
    Fd fd_;
};

} // namespace dtrain::shm
