// The connection of two devices, used in both directions, and the messages on it.
//
// Frames are sent in this order, decided anew at each frame boundary: control frames, then messages
// in the order in which they were posted, then pieces of granted messages in turn. A message is
// sent eagerly if it is small and the peer's window has room for it; otherwise it is announced, and
// sent once the peer has a buffer for it. Reading never waits for writing: reading can cause only
// control frames, and never more of those than the peer's announcements.
//
// On a protected connection all of this travels in records (records.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/eager_window.h"
#include "common/queue.h"
#include "protocol/rendezvous.h"
#include "tcp/address.h"
#include "tcp/frame.h"
#include "tcp/handshake.h"
#include "tcp/records.h"
#include "tcp/shared.h"

struct iovec;

namespace dtrain::tcp {

class Connection : public Pollable, public protocol::ConnectionBase<Device, Connection> {
  public:
    Connection(Shared *shared, const DeviceId &peer);

    bool up() const { return bool(fd_); }
    int fd() const { return fd_.get(); }
    const char *reason() const { return reason_; } // why it was lost
    // DTRAIN_ERR_PEER, or DTRAIN_ERR_CORRUPT: somebody has changed what travels on it.
    dtrain_status_t failure() const { return failure_; }

    // The handshake is done. False: no memory for the registration.
    bool establish(Route route);
    // Moves a bounded number of bytes. False: the connection is lost.
    bool progress();
    // Registers for the events after which progress() can do something.
    void update_interest();
    // Completes all pending operations with failure() and closes the socket.
    void abandon();

    void post(Send *send);
    // These complete the named operations with DTRAIN_ERR_CANCELED at once.
    void withdraw(const Endpoint *endpoint); // its sends
    void withdraw(uint64_t cookie);          // sends, and receives that have matched
    // A receive has taken this kept message, or nothing wants it any more (nullptr).
    void taken(tp::Message *message, tp::Receive *receive);
    // As taken(), for a message whose connection is gone, so that it is complete.
    static void deliver(Shared &shared, tp::Message *message, tp::Receive *receive);

    Handshake *handshake = nullptr; // the attempt to connect from this side, until it is up
    Address targets;                // addresses to try in turn
    uint32_t target = 0;            // index of the next one

  private:
    // connection_tx.cpp
    void write();
    bool next_frame();
    bool next_message();
    void next_piece();
    void begin(Frame frame, Send *payload, uint64_t payload_length);
    bool write_frame(uint64_t *bytes);
    void write_corrupt();
    void frame_written();
    void control(const Frame &frame);
    void give_credit(uint64_t length);
    void finish(Send *send, dtrain_status_t status);
    template <class Which> void withdraw_sends(const Which &which);
    template <class Which>
    void withdraw_queued(SendList *list, const Which &which, bool is_announced);
    void orphan_current();

    // connection_rx.cpp
    enum class Read { drained, more, lost };
    Read read();
    Read read_records();
    bool on_corrupt(const char *reason);
    bool consume(const uint8_t *bytes, size_t len);
    bool on_frame();
    bool on_eager();
    bool on_announce();
    bool on_grant();
    bool on_data();
    bool on_withdraw();
    tp::IovCursor *payload_place();
    int describe_payload(iovec *out);
    void payload_written(uint64_t len);
    void payload_complete();
    void grant(tp::Receive *receive, uint64_t message_tag, uint64_t length, uint32_t send_id);
    void finish(Transfer *transfer, dtrain_status_t failure = DTRAIN_OK);
    void withdraw_receives(uint64_t cookie);
    void drop_arriving();
    void keep_word();
    bool fail(const char *reason);
    bool starve(); // fails: this process lacks memory

    Shared &shared_;
    Fd fd_;
    std::unique_ptr<Records> records_; // nullptr: it is not protected
    const char *reason_ = "";
    dtrain_status_t failure_ = DTRAIN_ERR_PEER;
    bool broken_ = false;   // unusable; progress() reads the rest and reports it
    uint32_t interest_ = 0; // epoll events registered

    uint8_t out_header_[Frame::wire_length]; // of the frame being written
    size_t out_header_left_ = 0;
    uint64_t out_payload_left_ = 0;
    Send *out_send_ = nullptr; // the send to which the payload belongs
    uint8_t out_word_[8];      // its end is the rest of a word whose beginning was written
    uint32_t out_word_left_ = 0;
    bool blocked_ = false;     // the socket took only part of the data
    SendList queue_;           // messages not started yet
    SendList streams_;         // granted messages with bytes left to send
    tp::Queue<Frame> control_; // control frames that wait for the socket
    tp::EagerWindow window_{window};
    protocol::Rendezvous<Send> rendezvous_; // messages without a grant

    Frame in_; // the frame being read
    uint8_t in_header_[Frame::wire_length];
    size_t in_header_have_ = 0;
    uint64_t in_payload_left_ = 0;
    // Where the payload goes: one of these three, or it is dropped.
    tp::Receive *in_receive_ = nullptr;
    tp::Message *in_message_ = nullptr;
    Transfer *in_transfer_ = nullptr;
    tp::IdTable<Transfer> transfers_; // granted, not complete
};

} // namespace dtrain::tcp
