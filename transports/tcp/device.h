// One opened TCP device: its endpoints, and one connection per peer.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/guests.h"
#include "common/tag_table.h"
#include "tcp/connection.h"
#include "tcp/lobby.h"

#include <algorithm>
#include <string>

namespace dtrain::tcp {

// Implements the operations of dtrain_tp_ops_t. A connection lasts until one of its two devices
// closes; endpoints are added to it and removed from it.
class Device : private Lobby::Owner {
  public:
    explicit Device(const dtrain_tp_host_t *host);
    ~Device();
    dtrain_status_t open(const char *name);

    dtrain_status_t address(uint8_t out[Address::wire_length]);
    dtrain_status_t reachable(const void *address, size_t len);
    dtrain_status_t route(const void *address, size_t len, std::string *text);
    dtrain_status_t connect(const void *address, size_t len, uint64_t cookie, Endpoint **ep_p);
    void disconnect(Endpoint *ep);
    dtrain_status_t send(Endpoint *ep, uint64_t tag, const dtrain_tp_iov_t *iov, uint32_t n,
                         uint64_t cookie);
    dtrain_status_t recv(uint64_t wanted, uint64_t mask, const dtrain_tp_iov_t *iov, uint32_t n,
                         uint64_t cookie);
    void cancel(uint64_t cookie);
    void withdraw(uint64_t cookie);
    void purge(uint64_t wanted, uint64_t mask);
    uint64_t moved() const { return shared_.completions.moved; }
    void limit_eager(uint64_t bytes) { shared_.eager_limit = std::min(bytes, eager_limit); }
    int32_t progress(dtrain_tp_done_t *done, uint32_t max);
    int32_t event_fd() const { return shared_.poller.fd(); }
    dtrain_status_t arm();
    const tp::Host &host() const { return shared_.host; }

  private:
    Verdict admit(const DeviceId &peer) override;
    void joined(Connection *connection, const DeviceId &peer, Fd fd) override;
    void failed(Connection *connection, dtrain_status_t status, const char *reason) override;

    dtrain_status_t listen_everywhere(const char *best);
    Address leading(const Address &peer) const;
    Connection *find(const DeviceId &peer);
    Connection *add(const DeviceId &peer);
    void remove(Connection *connection);
    void show_out_guests();
    void lose(Connection *connection, dtrain_status_t status);
    void report(const Endpoint &ep, uint32_t kind, dtrain_status_t status);
    void run(Connection *connection);
    void run_all();
    void poll();
    void drain();

    Shared shared_;
    Lobby lobby_;
    Address own_;
    bool finds_address_ = false; // no interface was chosen: uses the route to other hosts
    char congestion_[16] = "";
    tp::TagTable<Connection> connections_;
    uint32_t connection_count_ = 0;
    tp::Guests<Connection> guests_;
    bool poll_next_ = false; // the caller slept or is about to: check everything
    uint32_t ticks_ = 0;
};

inline constexpr char any_interface[] = "auto"; // the device that chooses the interface itself
// "tcp.interface" (a list: one device each), else "listen.address", else any_interface.
void default_interface(const tp::Host &host, char *buf, size_t len);

} // namespace dtrain::tcp

struct dtrain_tp_dev final : dtrain::tcp::Device {
    using Device::Device;
};
