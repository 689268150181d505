// The receiving end of a connection: puts messages from frames in the ring (channel.h) into the
// buffers of waiting receives. Uses no socket.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/completions.h"
#include "common/match.h"
#include "shm/channel.h"
#include "shm/lazy_array.h"
#include "shm/peer_process.h"

namespace dtrain::shm {

class Receiver {
  public:
    Receiver(const Host &host, tp::Matcher &matcher, tp::Completions &done, const Doorbell &bell)
        : host_(host), matcher_(matcher), done_(done), bell_(bell) {}

    // process: as in Sender.
    void open(Segment &&segment, const Name &peer, const PeerProcess &process);
    // Processes what has arrived; a message without a receive may stay in the ring until the next
    // call. False: the peer broke the protocol; then call fail().
    bool receive();
    // As receive(), but leaves nothing in the ring: the peer is gone.
    bool receive_last();
    // Ends a receive that has begun with DTRAIN_ERR_CANCELED: at once, unless the peer is just
    // writing to its memory.
    void withdraw(uint64_t cookie);
    // Ends messages that are arriving, and forgets those that were only offered: nothing will
    // arrive any more.
    void fail();
    // Whether messages that arrived here are still kept: their origin is this object.
    bool is_keeping() const { return kept_ != 0; }

    // For a kept message of this origin, which is released: moves it to the receive that wants it
    // now, or drops it.
    void deliver(tp::Message *message, tp::Receive *receive);
    void discard(tp::Message *message);

    // As in Sender.
    void set_asleep(bool asleep);
    bool has_news();

  private:
    struct Incoming { // an offered message
        enum class State : uint8_t {
            none,
            announced, // no receive wants it yet
            queued,    // waits to be copied directly after others
            granting,
            receiving,
        } state = State::none;
        uint16_t slot = 0;
        uint64_t tag = 0;
        uint64_t length = 0;
        uint64_t from = 0; // the sender's address; 0: pieces only
        uint64_t left = 0; // bytes that have not arrived yet
        // If begun, nullptr means withdrawn: what arrives is dropped.
        tp::Receive *receive = nullptr;
        tp::Link<Incoming> link; // in granting_ or to_copy_
    };
    enum class Step { taken, held, broken };

    Step take_frame();
    Step take_eager(const Frame &frame);
    Step take_offer(const Frame &frame);
    Step take_piece(const Frame &frame);
    Step take_end_of_copy(const Frame &frame);
    Step take_withdrawal(const Frame &frame);
    void take_bytes(uint64_t bytes, tp::IovCursor &into);
    void begin(Incoming &incoming, tp::Receive *receive);
    void grant(Incoming &incoming);
    static uint8_t *destination(Incoming &incoming) {
        uint64_t contiguous;
        return incoming.receive->into.piece(&contiguous);
    }
    void copy_next();
    void copy();
    bool copies() const;
    void write_grants();
    void end(Incoming &incoming);
    void withdraw(Incoming &incoming);
    void end_withdrawal();
    void fail(Incoming &incoming, Status status);
    void finish(tp::Receive *receive, uint64_t tag, uint64_t length);
    void release(tp::Message *message);
    void publish();

    const Host &host_;
    tp::Matcher &matcher_;
    tp::Completions &done_;
    const Doorbell &bell_;
    Channel channel_;
    PeerProcess process_;
    RingReader ring_;
    RingWriter grants_;
    LazyArray<Incoming, max_offers> incoming_;
    tp::List<Incoming, &Incoming::link> granting_; // waiting because the ring of grants was full
    tp::List<Incoming, &Incoming::link> to_copy_;
    Incoming *copying_ = nullptr; // one at a time: both sides take parts of the same message
    bool copy_failed_ = false;
    int64_t patience_ns_ = 0; // latest end of copying_, which is withdrawn; 0: it is not
    bool is_last_ = false;    // receive_last()
    uint64_t kept_cost_ = 0;
    uint64_t kept_ = 0;
};

} // namespace dtrain::shm
