// One opened device over a wire.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "protocol/device.h"
#include "rdm/connection.h"
#include "rdm/handshakes.h"

#include <memory>
#include <string>

namespace dtrain::rdm {

class Device : public protocol::DeviceBase<Device, Connection, Shared, Route>, private Protocol {
  public:
    static constexpr size_t address_length = Address::wire_length;

    // `kind`: what the devices of two peers must have in common, below 16 characters: "ofi net".
    Device(const dtrain_tp_host_t *host, const char *kind);
    ~Device();
    Protocol *protocol() { return this; } // for the wire
    dtrain_status_t open(std::unique_ptr<Wire> wire, const char *name);

    dtrain_status_t query(dtrain_tp_attr_t *attr) const;
    dtrain_status_t address(uint8_t out[Address::wire_length]);
    dtrain_status_t reachable(const void *address, size_t len);
    dtrain_status_t route(const void *address, size_t len, std::string *text);
    dtrain_status_t connect(const void *address, size_t len, uint64_t cookie, Endpoint **ep_p);
    dtrain_status_t send(Endpoint *ep, uint64_t tag, const dtrain_tp_iov_t *iov, uint32_t n,
                         uint64_t cookie);
    struct RemoteMemory {
        uint64_t address;
        const void *rkey;
    };
    dtrain_status_t put(Endpoint *ep, const dtrain_tp_iov_t *iov, uint32_t n, RemoteMemory to,
                        uint64_t imm, uint64_t cookie);
    dtrain_status_t get(Endpoint *ep, const dtrain_tp_iov_t *iov, uint32_t n, RemoteMemory from,
                        uint64_t cookie);
    dtrain_status_t reg(const dtrain_mem_params_t &mem, dtrain_tp_mr_t **mr_p);
    dtrain_status_t counters(dtrain_tp_counters_t *counters) const;
    int32_t progress(dtrain_tp_done_t *done, uint32_t max);
    int32_t event_fd() const { return epoll_.get(); }
    dtrain_status_t arm();

  private:
    friend DeviceBase;
    void forget(Handshake *handshake) { handshakes_.forget(handshake); }
    void changed() { set_timer(); }
    Verdict admit(const DeviceId &peer) override;
    void joined(Connection *connection, const DeviceId &peer, Route route) override;

    void on_packet(const uint8_t *bytes, size_t len) override;
    void on_announced(const uint8_t *head, size_t len, Remote *remote) override;
    void on_sent(Operation *operation, bool ok) override;
    void on_fetched(Operation *operation, bool ok) override;
    void on_broken(Link *link, const Fault &fault) override;

    Channel *find_channel(const uint8_t *bytes, size_t len, Head *head);
    dtrain_status_t begin(const Address &peer, Connection *connection);
    dtrain_status_t prepare(const Endpoint &ep, const dtrain_tp_iov_t *iov, uint32_t n,
                            uint64_t *length);
    dtrain_status_t no_memory();
    dtrain_status_t past_records();
    Job *make_job(Job::Kind kind, Endpoint *ep, const dtrain_tp_iov_t *iov, uint32_t n,
                  uint64_t length, uint64_t cookie);
    dtrain_status_t begun(Job *job, Sent sent);
    bool watch(int fd, void *what);
    bool look_is_due();
    void look_around();
    void work();
    void set_timer();
    bool may_sleep_while_it_waits();
    void drain();

    std::unique_ptr<Wire> wire_;
    Handshakes handshakes_;
    Address own_;
    tp::Fd epoll_, timer_;
    bool protects_all_ = false;  // connections, whatever their peers demand
    bool look_next_ = false;     // the caller slept or is about to
    int64_t tick_ns_ = 0;        // interval of the timer; 0: off
    int64_t waits_since_ns_ = 0; // 0: nothing waits for the wire
    uint32_t ticks_ = 0, told_ = 0;
    int64_t looked_ns_ = 0;
};

} // namespace dtrain::rdm
