// The handshakes in progress on a device: incoming connections, attempts to connect, deadlines.
// Unauthenticated peers cost at most max_strangers small objects, and never a working connection.
// Those that have said nothing give way first, since a genuine peer says hello at once.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/list.h"
#include "tcp/acceptor.h"
#include "tcp/handshake.h"
#include "tcp/shared.h"

namespace dtrain::tcp {

class Handshakes {
  public:
    using Owner = protocol::HandshakeOwner<Connection, Route>;
    Handshakes(Shared *shared, Owner *owner)
        : host_(shared->host), poller_(shared->poller), owner_(*owner),
          refusals_(shared->host, shared->name),
          acceptor_(shared->host, &shared->poller, &refusals_) {}
    ~Handshakes();

    // As Acceptor::listen().
    dtrain_status_t open(SocketAddress *socket, const DeviceId &own);
    dtrain_status_t listen(SocketAddress *socket) { return acceptor_.listen(socket); }
    // Connects to its targets, one after the other, until one answers. May call failed() at once.
    void connect(Connection *connection);
    void forget(Handshake *handshake);
    bool idle() const {
        return silent_.empty() && spoken_.empty() && accepted_.empty() && attempts_.empty() &&
               trials_.empty();
    }
    // The poller found an event for one of their descriptors.
    void dispatch(Pollable *who);

  private:
    using List = tp::List<Handshake, &Handshake::link>;
    static constexpr int64_t deadline_ns = 3'000'000'000;
    static constexpr int64_t trial_ns = 1'000'000'000; // time for a target that is not the last
    static constexpr uint32_t max_accepts = 16;        // per call

    void on_listener();
    void on_handshake(Handshake *handshake);
    void on_timer();
    void start_timer(int64_t ns);
    List &list_of(const Handshake &handshake);
    static bool is_guest(const Handshake &handshake);
    void add(Handshake *handshake, uint32_t events);
    void note_spoken(Handshake *handshake);
    void give_up(Handshake *handshake, dtrain_status_t status, const char *reason);
    Handshake *attempt_at(const DeviceId &peer) const;
    Handshake::Step answer(Handshake *handshake);
    void make_way(const DeviceId &peer);
    void try_again(const DeviceId &peer, const char *reason);

    const tp::Host &host_;
    Poller &poller_;
    Owner &owner_;
    DeviceId own_{};
    protocol::Refusals refusals_;
    Acceptor acceptor_;
    Fd timer_;
    Pollable timer_key_{Pollable::Kind::timer};
    // Incoming before and after their hello, and accepted; outgoing, outgoing with other targets
    // left; oldest first.
    List silent_, spoken_, accepted_, attempts_, trials_;
    uint32_t stranger_count_ = 0, guest_count_ = 0; // guest: accepted, but not expected
    bool timer_running_ = false;
};

} // namespace dtrain::tcp
