// Creates and tunes sockets. All are non-blocking and close-on-exec.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/fd.h"
#include "tcp/address.h"

namespace dtrain::tcp {

// Listens on *socket and fills in its port.
dtrain_status_t listen_on(const tp::Host &host, SocketAddress *socket, tp::Fd *fd_p);
// Starts connecting; the socket becomes writable when it has ended. < 0: -errno, on immediate
// failure.
int start_connect(const SocketAddress &peer, tp::Fd *fd_p);
// Makes the socket fail when the peer's host has been silent for long.
void notice_loss(int fd);
// Sets the options of every connection; `congestion` as in the option tcp.congestion.
void tune(const tp::Host &host, int fd, const char *congestion);

} // namespace dtrain::tcp
