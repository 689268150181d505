// The connection of two devices, used in both directions, and the messages on it.
//
// A message goes eagerly when it is small and the peer's window has room for it, else as a bulk
// message, which the peer fetches once it has a place for it. What goes out is in the order in
// which it was sent, except that control heads overtake messages that wait for the wire.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/eager_window.h"
#include "common/fd.h"
#include "common/hello.h"
#include "common/queue.h"
#include "rdm/shared.h"

#include <memory>

namespace dtrain::rdm {

class Device;

} // namespace dtrain::rdm

struct dtrain_tp_ep {
    dtrain::rdm::Device *device = nullptr;
    dtrain::rdm::Connection *connection = nullptr; // nullptr: lost
    uint64_t cookie = 0;
    bool connect_due = true; // DTRAIN_TP_CONNECT is still to be reported
    bool lost_due = true;    // room for DTRAIN_TP_PEER_LOST is still reserved
    dtrain::tp::Link<dtrain_tp_ep> link;
};

namespace dtrain::rdm {

using Endpoint = dtrain_tp_ep;

class Connection {
  public:
    Connection(Shared *shared, const tp::DeviceId &peer);
    ~Connection();

    const tp::DeviceId &peer() const { return peer_; }
    bool up() const { return channel_ && channel_->link; }
    bool broken() const { return broken_; } // unusable; abandon() is due
    const char *reason() const { return reason_; }
    void fail(const char *reason); // from outside
    void quit(const char *reason); // by this side, which tells the peer

    // The handshake is over. `process` is the peer's, if it runs here: its end is the peer's.
    void establish(std::unique_ptr<Channel> channel, tp::Fd process);
    // Sends what can be sent.
    void flush();
    // Completes everything under way with DTRAIN_ERR_PEER and gives up the link.
    void abandon();
    void say_goodbye();                                // best effort; nothing follows it
    bool may_hear() const { return up() && !broken_; } // something may still come
    // Called now and then: pings a peer that was sent nothing since the last time, and gives up on
    // one that holds memory which was withdrawn, or has not filled it, for long.
    void tick(int64_t now_ns);

    // A message that leaves nothing to be remembered. False: not possible now, post() it.
    bool send_now(uint64_t message_tag, const dtrain_tp_iov_t *iov, uint32_t n, uint64_t length);
    void post(Job *message);
    Sent put(Job *job, uint64_t remote_address, const void *rkey);
    Sent get(Job *job, uint64_t remote_address, const void *rkey);
    // These complete what they name with DTRAIN_ERR_CANCELED: at once, or when the wire gives it
    // back; if that takes too long, the connection ends.
    void cancel(const Endpoint *endpoint);                                   // its messages
    void withdraw(uint64_t cookie);                                          // anything
    bool waits_for_memory() const { return withdrawn_ || holds_unwanted(); } // from the peer
    // A receive took this kept message, or nobody wants it any more (nullptr).
    void taken(tp::Message *message, tp::Receive *receive);
    // The same for one that is complete, also when its connection is gone.
    static void deliver(Shared &shared, tp::Message *message, tp::Receive *receive);

    // What came.
    void on_packet(const Head &head, const uint8_t *payload, size_t len);
    void on_bulk(const Head &head, Remote *remote);
    void on_done(Job *job, bool ok); // on_sent() and on_fetched() of the wire

    int process() const { return process_.get(); } // a descriptor of it, or -1

    Handshake *handshake = nullptr; // the attempt to connect from here, while it is not up
    tp::List<Endpoint, &Endpoint::link> endpoints;
    uint64_t tag = 0; // for TagTable: the beginning of the peer's id
    tp::Link<Connection> order, chain;
    tp::Link<Connection> guest_link; // while it is one of the device's guests
    int64_t guest_until_ns = 0;

  private:
    Sent send_head(Head head, Operation *payload);
    bool send_message(); // false: not now
    bool send_part(const Head &head);
    Sent began(Job *job, Sent result);
    void control(const Head &head);
    void give_credit(uint64_t length);
    bool accept(const Head &head);
    void on_arrived(Job *job);
    void finish(Job *job, dtrain_status_t status);
    void fetch(tp::Receive *receive, const Head &head, Remote *remote);
    void on_eager(const Head &head, const uint8_t *payload, size_t len);
    void on_part(const uint8_t *payload, size_t len);
    void on_bytes(const uint8_t *payload, size_t len);
    void on_part_sent(Job *part, bool ok);
    void on_withdraw(const Head &head);
    template <class Which> void withdraw_jobs(const Which &which);
    void withdraw(Job *job);
    void break_off(Job *transfer);
    bool holds_unwanted() const;
    void give_up();
    void take_arriving(tp::Receive *receive);

    struct Arriving {                   // an eager message, of which bytes are missing
        tp::Receive *receive = nullptr; // where it goes, or
        tp::Message *message = nullptr; // where it is kept; neither: nobody wants it any more
        uint64_t tag = 0, length = 0, missing = 0;
        bool unwanted = false; // as Job::unwanted
    };

    Shared &shared_;
    const tp::DeviceId peer_;
    std::unique_ptr<Channel> channel_;
    tp::Fd process_;
    bool broken_ = false;
    bool goodbye_ = false; // was said
    const char *reason_ = "";

    JobList queue_;  // messages not begun
    JobList flying_; // with the wire
    Arriving arriving_;
    tp::IdTable<Job> announced_; // bulk messages, which are flying, too
    tp::Queue<Head> control_;    // heads that wait for the wire
    tp::EagerWindow window_{window};
    uint32_t announcements_ = 0; // of the peer, not fetched and not dropped
    uint32_t sent_at_tick_ = 0;
    uint32_t withdrawn_ = 0;   // jobs that are canceled, whose memory is still away
    int64_t withdrawn_ns_ = 0; // since when
    int64_t unwanted_ns_ = 0;  // since when something is unwanted
};

} // namespace dtrain::rdm
