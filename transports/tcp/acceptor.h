// The listening socket of a device.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "protocol/handshakes.h"
#include "tcp/address.h"
#include "tcp/poller.h"

namespace dtrain::tcp {

// Never leaves the poller with a connection that cannot be accepted: the listener would stay
// readable, and threads that wait for the device would spin.
class Acceptor : public Pollable {
  public:
    Acceptor(const tp::Host &host, Poller *poller, protocol::Refusals *refusals)
        : Pollable(Kind::listener), host_(host), poller_(*poller), refusals_(*refusals) {}

    bool open() { return bool(reserve_ = open_reserve()); } // false: errno has the reason
    // Listens on *socket, and no longer on an earlier one; fills in its port.
    dtrain_status_t listen(SocketAddress *socket);
    // The next incoming connection, or none; *more: there may be others.
    Fd accept(bool *more);
    // There were no descriptors left: the listener is not watched until resume().
    bool is_paused() const { return paused_; }
    void resume();

  private:
    static Fd open_reserve();
    bool on_error(int error);

    const tp::Host &host_;
    Poller &poller_;
    protocol::Refusals &refusals_;
    Fd listener_;
    Fd reserve_; // used to accept and close if there are no descriptors left
    bool paused_ = false;
};

} // namespace dtrain::tcp
