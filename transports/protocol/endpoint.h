// An endpoint of a device, and the part of a connection that a device keeps in its table.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/hello.h"
#include "common/list.h"

namespace dtrain::protocol {

using tp::DeviceId;

// One use of the connection to a peer. Its two reports are made at most once each (connections.h).
template <class Device, class Connection> class Endpoint {
  public:
    Endpoint(Device &device, Connection *of, uint64_t own_cookie)
        : connection(of), cookie(own_cookie), device_(device) {}
    Device &device() const { return device_; }

    Connection *connection; // nullptr: lost
    const uint64_t cookie;
    bool connect_due = true; // DTRAIN_TP_CONNECT is still to be reported
    bool lost_due = true;    // room for DTRAIN_TP_PEER_LOST is still reserved
    tp::Link<Endpoint> link;

  private:
    Device &device_;
};

// Base of a transport's connections.
template <class Device, class Connection> class ConnectionBase {
  public:
    explicit ConnectionBase(const DeviceId &peer) : tag(tp::tag_of(peer)), peer_(peer) {}
    const DeviceId &peer() const { return peer_; }

    using Endpoint = protocol::Endpoint<Device, Connection>;
    tp::List<Endpoint, &Endpoint::link> endpoints;
    // These belong to the device's Connections.
    const uint64_t tag;
    tp::Link<ConnectionBase> order, chain;
    tp::Link<ConnectionBase> guest_link; // while it is one of the guests
    int64_t guest_until_ns = 0;          // 0: it is not a guest

  private:
    const DeviceId peer_;
};

} // namespace dtrain::protocol
