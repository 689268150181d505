// Local sockets with abstract names, which belong to no file system and vanish with their owner.
// Nothing here blocks.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/fd.h"
#include "shm/address.h"

#include <sys/types.h>

namespace dtrain::shm {

using tp::Fd;

// Where peers connect to. SOCK_SEQPACKET: a message arrives whole, with its descriptor, or not.
Status listen_as(const Host &host, const Name &name, Fd &out);
// DTRAIN_ERR_BUSY: too many connections wait there to be accepted; try again.
Status connect_to(const Host &host, const Name &name, Fd &out);
// False: nobody waits. out stays empty when it was another user than this one or root.
bool accept_from(const Fd &listener, Fd &out);

// The process at the other end; 0: unknown here.
pid_t peer_pid(const Fd &fd);
// True when the peer's user is this process's, or root.
bool is_peer_trusted(const Fd &fd);

// pass: a descriptor to send along, or -1. False: not sent; errno tells why.
bool send_message(const Fd &fd, const void *data, size_t len, int pass = -1);
// Bytes of the next message; 0: the peer is gone; < 0: nothing there now (or -EMSGSIZE: longer
// than `len`). passed: the descriptor that came along.
ssize_t receive_message(const Fd &fd, void *data, size_t len, Fd &passed);

// A datagram socket whose readability wakes its owner. Thread-safe but for open().
class Doorbell {
  public:
    Status open(const Host &host, const Name &name);
    // Wakes the owner of another bell, which may be gone.
    void ring(const Name &name) const;
    bool drain() const; // whether it had been rung
    const Fd &fd() const { return fd_; }

  private:
    Fd fd_;
};

} // namespace dtrain::shm
