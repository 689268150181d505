// The connection of two devices, used in both directions, and the messages on it.
//
// A message is sent eagerly if it is small and the peer's window has room for it, else as a bulk
// message, which the peer fetches once it has a receive for it. Messages keep the order in which
// they were sent, except that control heads overtake messages that wait for the wire.
//
// On a protected connection all of this travels in records (sealed.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/eager_window.h"
#include "common/fd.h"
#include "common/queue.h"
#include "protocol/rendezvous.h"
#include "rdm/sealed.h"
#include "rdm/shared.h"

#include <memory>

namespace dtrain::rdm {

class Connection : public protocol::ConnectionBase<Device, Connection> {
  public:
    Connection(Shared *shared, const DeviceId &peer);
    ~Connection();

    bool up() const { return channel_ && channel_->link; }
    bool broken() const { return broken_; } // unusable; abandon() must be called
    const char *reason() const { return reason_; }
    // For a failure noticed elsewhere.
    void fail(const char *reason, dtrain_status_t failure = DTRAIN_ERR_PEER);
    // By this side, which tells the peer.
    void quit(const char *reason, dtrain_status_t failure = DTRAIN_ERR_PEER);
    // Packets are missing, or came twice or in another order.
    void on_gap();
    // What came on a protected connection is not what the peer has sent.
    void on_corrupt();
    void starve() { quit("out of memory", DTRAIN_ERR_NO_MEMORY); }
    dtrain_status_t failure() const { return failure_; }
    // What those learn whose operations it ends. What lacks memory is this process.
    dtrain_status_t told() const {
        return failure_ == DTRAIN_ERR_NO_MEMORY ? DTRAIN_ERR_PEER : failure_;
    }

    // The handshake is done.
    void establish(Route route);
    bool is_protected() const { return bool(sealed_); }
    // Sends what can be sent.
    void flush();
    // The same, within progress().
    void work();
    // The wire has everything that was reported as sent.
    bool is_flushed() { return !sealed_ || !may_send() || sealed_->is_flushed(); }
    // Completes everything in progress with told(), and gives up the link.
    void abandon();
    void say_goodbye(bool corrupt = false); // best effort; nothing follows it
    bool may_hear() const { return up() && !broken_ && !closed_ns_; } // something may still arrive
    // To be called periodically: pings a peer that was sent nothing since the last call, and gives
    // up on a peer that holds withdrawn memory, or has not filled it, for long.
    void tick(int64_t now_ns);

    // Sends a message that leaves no state. False: not possible now, call post().
    bool send_now(uint64_t message_tag, const dtrain_tp_iov_t *iov, uint32_t n, uint64_t length);
    void post(Job *message);
    Sent put(Job *job, uint64_t remote_address, const void *rkey);
    Sent get(Job *job, uint64_t remote_address, const void *rkey);
    // These complete the named operations with DTRAIN_ERR_CANCELED: at once, or when the wire
    // returns them; if that takes too long, the connection ends.
    void withdraw(const Endpoint *endpoint); // its messages
    void withdraw(uint64_t cookie);          // anything
    bool waits_for_memory() const {          // held by the peer, or not reported yet
        return withdrawn_ || closed_ns_ || holds_unwanted();
    }
    // A receive has taken this kept message, or nothing wants it any more (nullptr).
    void taken(tp::Message *message, tp::Receive *receive);
    // As taken(), for a complete message, also when its connection is gone.
    static void deliver(Shared &shared, tp::Message *message, tp::Receive *receive);

    // Processes what has arrived by the wire,
    void hear(const Head &head, const uint8_t *body, size_t len);
    void hear_announced(const Head &head, Remote *remote);
    // and what of it is for the protocol.
    void on_packet(const Head &head, const uint8_t *payload, size_t len);
    void on_bulk(const Head &head, Remote *remote);
    void on_done(Job *job, bool ok); // for on_sent() and on_fetched() of the wire

    int process() const { return process_.get(); } // a descriptor of it, or -1

    Handshake *handshake = nullptr; // the attempt to connect from this side, until it is up

  private:
    bool may_send() const { return up() && !broken_ && !goodbye_ && !closed_ns_; }
    Sent send_head(Head head, Operation *payload);
    bool send_message(); // false: not possible now
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
    void on_goodbye();
    template <class Which> void withdraw_jobs(const Which &which);
    void withdraw(Job *job);
    void break_off(Job *transfer);
    bool holds_unwanted() const;
    void give_up();
    void take_arriving(tp::Receive *receive);

    struct Arriving {                   // an eager message of which bytes are missing
        tp::Receive *receive = nullptr; // its destination, or
        tp::Message *message = nullptr; // where it is kept; neither: nothing wants it any more
        uint64_t tag = 0, length = 0, missing = 0;
        bool unwanted = false; // as Job::unwanted
    };

    Shared &shared_;
    std::unique_ptr<Channel> channel_;
    tp::Fd process_;
    std::unique_ptr<Sealed> sealed_;   // nullptr: it is not protected
    Carrier *carrier_;                 // sealed_, or the wire
    uint64_t part_limit_, copy_limit_; // as in Shared, or of sealed_
    bool broken_ = false;
    bool goodbye_ = false; // it was sent
    const char *reason_ = "";
    dtrain_status_t failure_ = DTRAIN_ERR_PEER;

    JobList queue_;  // messages not started
    JobList flying_; // held by the wire
    Arriving arriving_;
    protocol::Rendezvous<Job> rendezvous_; // bulk messages; those of this side are in flying_, too
    tp::Queue<Head> control_;              // heads that wait for the wire
    tp::EagerWindow window_{window};
    uint32_t sent_at_tick_ = 0;
    uint32_t withdrawn_ = 0;   // canceled jobs whose memory the wire still holds
    int64_t withdrawn_ns_ = 0; // time of the first of them
    int64_t unwanted_ns_ = 0;  // since when something is unwanted
    int64_t closed_ns_ = 0;    // the peer has closed then, and some operations are not reported yet
};

} // namespace dtrain::rdm
