// Connections before they are trusted: the listening socket, attempts to connect, and deadlines.
// Unauthenticated peers cost at most max_strangers small objects, and never a working connection.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/host.h"
#include "common/list.h"
#include "tcp/address.h"
#include "tcp/handshake.h"
#include "tcp/poller.h"

namespace dtrain::tcp {

class Lobby {
  public:
    // How the device handles the outcome. `connection` is the argument of connect(), or nullptr for
    // a peer that connected to this device.
    class Owner {
      public:
        // Whether this peer, which has proven itself, may connect to this device.
        virtual Verdict admit(const DeviceId &peer) = 0;
        virtual void joined(Connection *connection, const DeviceId &peer, Fd fd) = 0;
        virtual void failed(Connection *connection, dtrain_status_t status, const char *reason) = 0;

      protected:
        ~Owner() = default;
    };

    Lobby(const tp::Host &host, Poller *poller, Owner *owner)
        : host_(host), poller_(*poller), owner_(*owner) {}
    ~Lobby();

    // Listens on *socket and fills in its port.
    dtrain_status_t open(SocketAddress *socket, const DeviceId &own);
    // From now on listens on *socket instead.
    dtrain_status_t listen(SocketAddress *socket);
    // Connects to its targets, one after the other, until one answers. May call failed() at once.
    void connect(Connection *connection);
    void forget(Handshake *handshake);
    bool idle() const { return strangers_.empty() && attempts_.empty() && trials_.empty(); }
    // The poller found an event for one of the lobby's descriptors.
    void dispatch(Pollable *who);

  private:
    using Handshakes = tp::List<Handshake, &Handshake::link>;
    static constexpr int64_t deadline_ns = 3'000'000'000;
    static constexpr int64_t trial_ns = 1'000'000'000; // time for a target that is not the last
    static constexpr int64_t log_interval_ns = 60'000'000'000;
    static constexpr uint32_t max_strangers = 64, max_accepts = 16; // the latter per call

    void on_listener();
    bool on_accept_error(int error);
    void on_handshake(Handshake *handshake);
    void on_timer();
    void start_timer(int64_t ns);
    Handshakes &list_of(const Handshake &handshake);
    void add(Handshake *handshake, uint32_t events);
    void give_up(Handshake *handshake, dtrain_status_t status, const char *reason);
    void log_stranger(const char *reason);

    const tp::Host &host_;
    Poller &poller_;
    Owner &owner_;
    DeviceId own_{};
    Fd listener_, timer_;
    Fd reserve_; // used to accept and close if there are no descriptors left
    Pollable listener_key_{Pollable::Kind::listener}, timer_key_{Pollable::Kind::timer};
    // Incoming, outgoing, outgoing with other targets left; oldest first.
    Handshakes strangers_, attempts_, trials_;
    uint32_t stranger_count_ = 0;
    bool timer_running_ = false;
    bool paused_ = false; // the listener is not watched until the timer expires
    int64_t last_log_ns_ = -log_interval_ns;
    uint64_t refused_ = 0; // refused incoming connections since the last log line
};

} // namespace dtrain::tcp
