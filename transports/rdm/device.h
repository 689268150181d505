// One opened device: its endpoints, and one connection per peer, over a wire.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/guests.h"
#include "common/tag_table.h"
#include "rdm/connection.h"
#include "rdm/lobby.h"

#include <algorithm>
#include <memory>
#include <string>

namespace dtrain::rdm {

// Implements the operations of dtrain_tp_ops_t. A connection lasts until one of its two devices
// closes; endpoints are added to it and removed from it.
class Device : private Protocol, private Lobby::Owner {
  public:
    // `kind`: what the devices of two peers must have in common, below 16 characters: "ofi net".
    Device(const dtrain_tp_host_t *host, const char *kind);
    ~Device();
    const tp::Host &host() const { return shared_.host; }
    Protocol *protocol() { return this; } // for the wire
    dtrain_status_t open(std::unique_ptr<Wire> wire, const char *name);

    dtrain_status_t query(dtrain_tp_attr_t *attr) const;
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
    struct RemoteMemory {
        uint64_t address;
        const void *rkey;
    };
    dtrain_status_t put(Endpoint *ep, const dtrain_tp_iov_t *iov, uint32_t n, RemoteMemory to,
                        uint64_t imm, uint64_t cookie);
    dtrain_status_t get(Endpoint *ep, const dtrain_tp_iov_t *iov, uint32_t n, RemoteMemory from,
                        uint64_t cookie);
    Wire &wire() { return *wire_; }
    void limit_eager(uint64_t bytes) { shared_.eager_limit = std::min(bytes, most_eager_); }
    uint64_t moved() const { return shared_.completions.moved; }
    dtrain_status_t counters(dtrain_tp_counters_t *counters) const;
    int32_t progress(dtrain_tp_done_t *done, uint32_t max);
    int32_t event_fd() const { return epoll_.get(); }
    dtrain_status_t arm();

  private:
    void on_packet(const uint8_t *bytes, size_t len) override;
    void on_announced(const uint8_t *head, size_t len, Remote *remote) override;
    void on_sent(Operation *operation, bool ok) override;
    void on_fetched(Operation *operation, bool ok) override;
    void on_broken(Link *link, const char *why) override;

    bool admit(const DeviceId &peer) override;
    void joined(Connection *connection, const DeviceId &peer, std::unique_ptr<Channel> channel,
                tp::Fd process) override;
    void failed(Connection *connection, dtrain_status_t status, const char *reason) override;

    Channel *find_channel(const uint8_t *bytes, size_t len, Head *head);
    Connection *find(const DeviceId &peer);
    Connection *add(const DeviceId &peer);
    void remove(Connection *connection);
    void lose(Connection *connection, dtrain_status_t status);
    dtrain_status_t begin(const Address &peer, Connection *connection);
    void take(tp::Message *message, tp::Receive *receive);
    void report(const Endpoint &ep, uint32_t kind, dtrain_status_t status);
    dtrain_status_t prepare(const Endpoint &ep, const dtrain_tp_iov_t *iov, uint32_t n,
                            uint64_t *length);
    dtrain_status_t no_memory();
    Job *make_job(Job::Kind kind, Endpoint *ep, const dtrain_tp_iov_t *iov, uint32_t n,
                  uint64_t length, uint64_t cookie);
    dtrain_status_t begun(Job *job, Sent sent);
    bool watch(int fd, void *what);
    bool look_is_due();
    void look_around();
    void work();
    void set_timer();
    void drain();

    Shared shared_;
    std::unique_ptr<Wire> wire_;
    Lobby lobby_;
    Address own_;
    uint64_t most_eager_ = 0;
    tp::TagTable<Connection> connections_;
    tp::Guests<Connection> guests_;
    tp::Fd epoll_, timer_;
    bool look_next_ = false; // the caller slept or is about to
    int64_t tick_ns_ = 0;    // interval of the timer; 0: off
    uint32_t ticks_ = 0, told_ = 0;
    int64_t looked_ns_ = 0;
};

} // namespace dtrain::rdm

struct dtrain_tp_dev final : dtrain::rdm::Device {
    using Device::Device;
};
