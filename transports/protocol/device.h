// The part of a device that does not depend on what carries its messages.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/host.h"
#include "protocol/connections.h"
#include "protocol/handshakes.h"
#include "protocol/shared.h"

#include <algorithm>

namespace dtrain::protocol {

// Base of the transports' devices (their class is Device): operations of dtrain_tp_ops_t on
// endpoints and receives. A connection lasts until one of its two devices closes; endpoints are
// added to it and removed from it. Device has
//   forget(Handshake *)  ends the attempt to connect that connection->handshake names,
//   changed()            called after connections or their endpoints have changed.
template <class Device, class Connection, class Shared, class Route>
class DeviceBase : protected HandshakeOwner<Connection, Route> {
  public:
    using Endpoint = protocol::Endpoint<Device, Connection>;

    DeviceBase(const dtrain_tp_host_t *host, const char *name) : shared_(host, name) {}
    const tp::Host &host() const { return shared_.host; }

    void disconnect(Endpoint *ep) {
        leave(ep);
        connections_.destroy(ep);
    }
    dtrain_status_t recv(uint64_t wanted, uint64_t mask, const dtrain_tp_iov_t *iov, uint32_t n,
                         uint64_t cookie) {
        uint64_t length;
        if (!tp::iov_length(iov, n, &length))
            return host().fail(DTRAIN_ERR_INVALID, "%s: a receive can have at most %u pieces",
                               shared_.name, tp::max_iov);
        Receives::Match match;
        if (!shared_.receives.post(wanted, mask, iov, n, length, cookie, &match))
            return host().fail(DTRAIN_ERR_NO_MEMORY, "%s: no memory for another receive",
                               shared_.name);
        if (match.message) take(match.message, match.receive);
        return DTRAIN_OK;
    }
    void cancel(uint64_t cookie) { shared_.receives.cancel(cookie); }
    void withdraw(uint64_t cookie) {
        cancel(cookie);
        for (Connection *c = connections_.front(); c; c = connections_.next(c)) c->withdraw(cookie);
        self().changed();
    }
    void purge(uint64_t wanted, uint64_t mask) {
        while (tp::Message *message = shared_.receives.take(wanted, mask)) take(message, nullptr);
    }
    uint64_t moved() const { return shared_.completions.moved; }
    void limit_eager(uint64_t bytes) { shared_.eager_limit = std::min(bytes, most_eager_); }

  protected:
    void set_most_eager(uint64_t bytes) { most_eager_ = shared_.eager_limit = bytes; }
    uint64_t most_eager() const { return most_eager_; }

    // Makes an endpoint for this peer; *fresh: its connection is new, and has yet to be made.
    // nullptr, with the text: no memory.
    Endpoint *attach(const DeviceId &peer, uint64_t cookie, bool *fresh) {
        Connection *connection = connections_.find(peer);
        *fresh = !connection;
        if (*fresh) connection = add(peer);
        Endpoint *ep = connection ? connections_.attach(self(), connection, cookie) : nullptr;
        if (!ep) {
            if (*fresh && connection) connections_.remove(connection);
            host().fail(DTRAIN_ERR_NO_MEMORY, "%s: no memory for another endpoint", shared_.name);
        } else if (connection->up()) {
            connections_.report_up(ep);
        }
        return ep;
    }
    // Undoes attach().
    void discard(Endpoint *ep) {
        leave(ep);
        connections_.destroy_unreported(ep);
    }
    // The connection on which a handshake has succeeded, made if there is none. nullptr: no memory.
    Connection *accept(Connection *connection, const DeviceId &peer) {
        if (connection && connection->up()) { // the peer has lost it, and connects again
            lose(connection, DTRAIN_ERR_PEER);
            connection = nullptr;
        }
        if (!connection) {
            connection = add(peer);
            if (!connection) return nullptr;
            Connection *guest = connections_.receive(connection, host().now_ns());
            if (guest && guest != connection) lose(guest, DTRAIN_ERR_PEER);
            return connection;
        }
        if (connection->handshake) self().forget(connection->handshake);
        return connection;
    }
    bool is_expected(const DeviceId &peer) final { return connections_.is_expected(peer); }
    void failed(Connection *connection, dtrain_status_t status, const char *reason) final {
        host().fail(status, "%s: cannot connect: %s", shared_.name, reason);
        host().log(DTRAIN_LOG_INFO, "%s: cannot connect: %s", shared_.name, reason);
        lose(connection, status);
    }
    void lose(Connection *connection, dtrain_status_t status) {
        if (connection->up())
            host().log(DTRAIN_LOG_INFO, "%s: connection lost: %s", shared_.name,
                       connection->reason());
        connection->abandon();
        if (connection->handshake) self().forget(connection->handshake);
        connections_.report_lost(connection, status);
        connections_.remove(connection);
        self().changed();
    }
    // Of all connections, when the device closes.
    void abandon_all() {
        while (Connection *connection = connections_.front()) {
            connection->abandon();
            connections_.remove(connection);
        }
    }

    Shared shared_;
    Connections<Device, Connection> connections_{&shared_.completions};

  private:
    Device &self() { return static_cast<Device &>(*this); }
    Connection *add(const DeviceId &peer) {
        auto *connection = new (std::nothrow) Connection(&shared_, peer);
        if (connection) connections_.add(connection);
        return connection;
    }
    void take(tp::Message *message, tp::Receive *receive) {
        if (auto *origin = static_cast<Connection *>(message->origin))
            origin->taken(message, receive);
        else
            Connection::deliver(shared_, message, receive);
    }
    void leave(Endpoint *ep) {
        Connection *connection = ep->connection;
        if (!connection) return;
        connection->endpoints.remove(ep);
        connection->withdraw(ep);
        if (!connection->up() && connection->endpoints.empty()) {
            if (connection->handshake) self().forget(connection->handshake);
            connections_.remove(connection);
        }
        self().changed();
    }

    uint64_t most_eager_ = 0;
};

} // namespace dtrain::protocol
