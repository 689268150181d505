// One opened TCP device.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "protocol/device.h"
#include "tcp/connection.h"
#include "tcp/handshakes.h"

#include <memory>
#include <string>

namespace dtrain::tcp {

class Device final : public protocol::DeviceBase<Device, Connection, Shared, Route> {
  public:
    static constexpr size_t address_length = Address::wire_length;
    static const char *transport_name() { return tcp::transport_name; }
    static dtrain_status_t list(const tp::Host &host, std::string *names);
    static std::unique_ptr<Device> make(const dtrain_tp_host_t *host, const char *name);

    explicit Device(const dtrain_tp_host_t *host);
    ~Device();
    dtrain_status_t open(const char *name);

    dtrain_status_t query(dtrain_tp_attr_t *attr) const;
    dtrain_status_t address(uint8_t out[Address::wire_length]);
    dtrain_status_t reachable(const void *address, size_t len);
    dtrain_status_t route(const void *address, size_t len, std::string *text);
    dtrain_status_t connect(const void *address, size_t len, uint64_t cookie, Endpoint **ep_p);
    dtrain_status_t send(Endpoint *ep, uint64_t tag, const dtrain_tp_iov_t *iov, uint32_t n,
                         uint64_t cookie);
    int32_t progress(dtrain_tp_done_t *done, uint32_t max);
    int32_t event_fd() const { return shared_.poller.fd(); }
    dtrain_status_t arm();

  private:
    friend DeviceBase;
    void forget(Handshake *handshake) { handshakes_.forget(handshake); }
    void changed() {}
    Verdict admit(const DeviceId &peer) override;
    void joined(Connection *connection, const DeviceId &peer, Route route) override;

    dtrain_status_t listen_everywhere(const char *best);
    Address leading(const Address &peer) const;
    void show_out_guests();
    void run(Connection *connection);
    void run_all();
    void poll();
    void update_interests();
    void drain();

    Handshakes handshakes_;
    Address own_;
    bool finds_address_ = false; // no interface was chosen: uses the route to other hosts
    char congestion_[16] = "";
    bool poll_next_ = false;        // the caller slept or is about to: check everything
    uint32_t told_ = 0, ticks_ = 0; // calls of progress() that looked at no connection, and others
};

} // namespace dtrain::tcp
