// Making and tuning sockets. All are non-blocking and close-on-exec.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/fd.h"
#include "tcp/address.h"

namespace dtrain::tcp {

// Listens on *socket, whose port is filled in.
dtrain_status_t listen_on(const tp::Host &host, SocketAddress *socket, tp::Fd *fd_p);
// Starts connecting; the outcome shows when the socket is writable. < 0: -errno, at once.
int start_connect(const SocketAddress &peer, tp::Fd *fd_p);
// Options of every connection; `congestion` as in the option tcp.congestion.
void tune(const tp::Host &host, int fd, const char *congestion);

} // namespace dtrain::tcp
