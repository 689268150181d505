// The connections of a device and the endpoints that use them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/completions.h"
#include "common/guests.h"
#include "common/tag_table.h"
#include "protocol/endpoint.h"

namespace dtrain::protocol {

// Owns the connections, and sees to it that each endpoint reports its connection and then its loss,
// or its failure; room for these reports is reserved when the endpoint is made.
template <class Device, class Connection> class Connections {
    using Base = ConnectionBase<Device, Connection>;
    using Table = tp::TagTable<Base>;

  public:
    using Endpoint = protocol::Endpoint<Device, Connection>;
    explicit Connections(tp::Completions *completions) : completions_(*completions) {}

    Connection *front() const { return as_connection(table_.front()); }
    static Connection *next(const Connection *c) { return as_connection(Table::next(c)); }
    uint32_t count() const { return count_; }
    Connection *find(const DeviceId &peer) {
        Base *found = table_.find(tp::tag_of(peer));
        return found && found->peer() == peer ? as_connection(found) : nullptr;
    }
    void add(Connection *connection) {
        table_.insert(connection);
        count_++;
    }
    void remove(Connection *connection) { // it has no endpoints
        guests_.forget(connection);
        table_.remove(connection);
        count_--;
        delete connection;
    }

    // The core asks about a device: it is one of the job.
    void expect(const DeviceId &peer) { guests_.expect(peer, find(peer)); }
    bool is_expected(const DeviceId &peer) { return guests_.is_expected(peer); }
    // A device has connected by itself. Returns a guest to lose, or nullptr.
    Connection *receive(Connection *connection, int64_t now_ns) {
        if (guests_.is_expected(connection->peer())) return nullptr;
        return as_connection(guests_.receive(connection, now_ns));
    }
    bool has_guests() const { return !guests_.empty(); }
    Connection *overdue_guest(int64_t now_ns) const {
        return as_connection(guests_.overdue(now_ns));
    }

    // nullptr: no memory.
    Endpoint *attach(Device &device, Connection *connection, uint64_t cookie) {
        auto *ep = new (std::nothrow) Endpoint(device, connection, cookie);
        if (!ep || !completions_.reserve(2)) {
            delete ep;
            return nullptr;
        }
        connection->endpoints.push_back(ep);
        return ep;
    }
    // The connection is up.
    void report_up(Connection *connection) {
        for (Endpoint *ep = connection->endpoints.front(); ep; ep = connection->endpoints.next(ep))
            report_up(ep);
    }
    void report_up(Endpoint *ep) {
        if (std::exchange(ep->connect_due, false)) report(*ep, DTRAIN_TP_CONNECT, DTRAIN_OK);
    }
    // The connection is lost, or failed to come up with `status`.
    void report_lost(Connection *connection, dtrain_status_t status) {
        while (Endpoint *ep = connection->endpoints.pop_front()) {
            ep->connection = nullptr;
            if (std::exchange(ep->connect_due, false)) {
                report(*ep, DTRAIN_TP_CONNECT, status);
            } else {
                ep->lost_due = false;
                report(*ep, DTRAIN_TP_PEER_LOST, status);
            }
        }
    }
    // The endpoint has left its connection.
    void destroy(Endpoint *ep) {
        if (ep->connect_due) report(*ep, DTRAIN_TP_CONNECT, DTRAIN_ERR_CANCELED);
        if (ep->lost_due) completions_.unreserve();
        delete ep;
    }
    // As destroy(), for one whose connection attempt failed at once.
    void destroy_unreported(Endpoint *ep) {
        if (std::exchange(ep->connect_due, false)) completions_.unreserve();
        destroy(ep);
    }

  private:
    static Connection *as_connection(Base *base) { return static_cast<Connection *>(base); }
    void report(const Endpoint &ep, uint32_t kind, dtrain_status_t status) {
        completions_.push({ep.cookie, 0, 0, 0, status, kind, 0});
    }

    tp::Completions &completions_;
    Table table_;
    uint32_t count_ = 0;
    tp::Guests<Base> guests_;
};

} // namespace dtrain::protocol
