// Connections from devices that the core of this process has not asked for.
// SPDX-License-Identifier: Apache-2.0
//
// Without a secret the handshake admits everybody. But the core asks about every device of the job
// (reachable(), connect()). So a device that connects before it was asked about is either a peer
// that has heard of the job earlier than this process, or a stranger, of which there may be many.
// Therefore such connections are bounded in number and in time. The owner closes them.
#pragma once
#include "hello.h"
#include "list.h"
#include "tag_table.h"

#include <new>
#include <utility>

namespace dtrain::tp {

inline constexpr uint32_t most_guests = 256;
inline constexpr int64_t guest_patience_ns = 15'000'000'000;

// Connection must have the member `guest_link` and `int64_t guest_until_ns = 0`.
template <class Connection> class Guests {
  public:
    Guests() = default;
    Guests(const Guests &) = delete;
    Guests &operator=(const Guests &) = delete;
    ~Guests() {
        while (Known *known = known_.front()) {
            known_.remove(known);
            delete known;
        }
    }

    // The core asks about a device; `connection` is its connection, or nullptr.
    void expect(const DeviceId &peer, Connection *connection) {
        if (connection) forget(connection);
        if (is_expected(peer)) return;
        auto *known = new (std::nothrow) Known;
        if (!known) return; // then it counts as a guest
        known->tag = tag_of(peer);
        known_.insert(known);
    }
    bool is_expected(const DeviceId &peer) { return known_.find(tag_of(peer)) != nullptr; }

    // A device has connected. Returns the connection to close to make room, or nullptr.
    Connection *receive(Connection *connection, int64_t now_ns) {
        connection->guest_until_ns = now_ns + guest_patience_ns;
        guests_.push_back(connection);
        return ++count_ > most_guests ? guests_.front() : nullptr;
    }
    // To be called before the connection is deleted.
    void forget(Connection *connection) {
        if (!std::exchange(connection->guest_until_ns, 0)) return;
        guests_.remove(connection);
        count_--;
    }
    // A connection whose time is over, or nullptr.
    Connection *overdue(int64_t now_ns) const {
        Connection *oldest = guests_.front();
        return oldest && oldest->guest_until_ns <= now_ns ? oldest : nullptr;
    }
    bool empty() const { return guests_.empty(); }

  private:
    struct Known {
        uint64_t tag = 0;
        Link<Known> order, chain;
    };
    TagTable<Known> known_;
    List<Connection, &Connection::guest_link> guests_; // oldest first
    uint32_t count_ = 0;
};

} // namespace dtrain::tp
