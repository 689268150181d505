// The sending end of a connection: puts messages as frames into the ring (channel.h). Uses no
// socket.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/completions.h"
#include "common/match.h"
#include "shm/channel.h"
#include "shm/lazy_array.h"
#include "shm/peer_process.h"

namespace dtrain::shm {

struct SendOp {
    uint64_t tag = 0;
    uint64_t cookie = 0;
    uint64_t length = 0;
    tp::IovCursor from;
    bool offered = false, granted = false, direct = false;
    // Reported to its owner; the slot stays in use until the receiver is done.
    bool withdrawn = false;
    bool to_tell = false; // it is in Sender::to_tell_
    uint64_t into = 0;    // the receiver's address, if both sides copy
    uint16_t slot = 0;    // valid once offered
    tp::Link<SendOp> link;
};

class Sender {
  public:
    Sender(tp::Pool<SendOp> &ops, tp::Completions &done, const Doorbell &bell,
           const uint64_t &most_eager)
        : ops_(ops), done_(done), bell_(bell), most_eager_(most_eager) {}

    // The connection is up: messages posted before are sent by the next advance(). process: in
    // reach if both can access each other's memory.
    void open(Segment &&segment, const Name &peer, const PeerProcess &process,
              tp::Distance distance);
    // Accepts a message. DTRAIN_ERR_BUSY: too many messages are in progress already.
    Status post(uint64_t tag, const dtrain_tp_iov_t *iov, uint32_t n, uint64_t length,
                uint64_t cookie);
    // Moves what can be moved. False: the peer broke the protocol; then call fail().
    bool advance();
    // Ends the message with this cookie with DTRAIN_ERR_CANCELED.
    void withdraw(uint64_t cookie);
    // Ends all pending messages with this status.
    void fail(Status status);
    bool is_pending() const { return pending_ != 0; }

    // Before falling asleep: after set_asleep(true) the peer wakes this device as soon as it has
    // made can_advance() true, unless it is true already.
    void set_asleep(bool asleep);
    bool can_advance();

  private:
    using Ops = tp::List<SendOp, &SendOp::link>;
    static constexpr uint32_t no_slot = UINT32_MAX;
    struct Slot {
        SendOp *op = nullptr; // the offered message; nullptr: free
        uint32_t next_free = no_slot;
    };

    bool start(SendOp *op);
    bool offer(SendOp *op);
    bool is_worth_direct(uint64_t length);
    bool is_eager(const SendOp &op);
    bool take_grants();
    bool take_grant(const Grant &grant);
    void stream();
    void copy();
    void write_frame(const Frame &frame, tp::IovCursor &from);
    void take_back(SendOp *op);
    void tell_withdrawals();
    void report(const SendOp &op, Status status);
    void release(SendOp *op);
    void complete(SendOp *op, Status status) {
        report(*op, status);
        release(op);
    }

    tp::Pool<SendOp> &ops_;
    tp::Completions &done_;
    const Doorbell &bell_;
    const uint64_t &most_eager_; // bytes of a message; up to eager_limit
    Channel channel_;
    PeerProcess process_;
    RingWriter ring_;
    RingReader grants_;
    Ops waiting_;   // not started: the connection is not up, or the ring is full
    Ops streaming_; // granted, with bytes still to send
    Ops copying_;   // granted, to be copied directly together with the receiver
    Ops to_tell_;   // withdrawn; the receiver must be told
    LazyArray<Slot, max_offers> slots_;
    uint32_t free_slot_ = no_slot; // list of slots that were used before
    uint32_t used_slots_ = 0;      // number of slots ever used
    uint32_t offers_ = 0, pending_ = 0;
    uint32_t direct_ = 0;  // messages for which that is faster
    bool written_ = false; // written but not published yet
};

} // namespace dtrain::shm
