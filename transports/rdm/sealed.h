// What protects a connection: its packets and bulk messages travel in records (common/guard.h),
// each of them a packet of its own kind. Nothing reaches the memory of a receive before its tag was
// checked, and no card writes there: what is fetched comes in records, too.
//
//   packet   Head of kind `record` (all of it readable: it only finds the channel), then the record
//   record   its length, payload, tag
//   payload  Part, and as its kind says:
//     packet    the protocol's head, and what follows it
//     announce  id, then the protocol's head: a bulk message waits, whose number at its sender is
//               id
//     grant     id, length, place: send that many bytes of it, for which the receiver's number is
//               place. length 0: nothing is wanted, it is over.
//     data      place, then the next bytes of that message. Uses the stream window.
//     credit    length: bytes of the stream window that are returned
//     fetched   id: all of it has come
//     ended     place: the sender has taken the message back, nothing follows
//
// The packets of a link arrive in order, each once, so the number of a record need not be sent. One
// that does not open ends the connection with DTRAIN_ERR_CORRUPT.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/eager_window.h"
#include "common/guard.h"
#include "common/queue.h"
#include "rdm/shared.h"

#include <memory>

namespace dtrain::rdm {

inline constexpr uint64_t stream_window = 256 << 10; // bytes of data on their way

class Sealed final : public Carrier {
  public:
    // nullptr: no memory. All but the guard must outlive it.
    static std::unique_ptr<Sealed> make(Shared &shared, Connection &owner, const Channel &channel,
                                        tp::Guard guard);

    uint64_t part_limit() const { return whole_words(room_ - Head::wire_length); } // as Shared's
    // `body` follows a head of kind `record`.
    void on_record(const uint8_t *body, size_t len);
    // Sends what waits, and reports what has ended. Only where a wire may call the protocol.
    void work();
    // The wire has all that waits for it.
    bool is_flushed() { return flush() != Sent::busy; }
    // As Wire::unlink().
    void end();

    // As a wire; `link` is always that of the channel.
    Sent send(Link *link, const void *head, size_t len, Operation *payload) override;
    Sent announce(Link *link, const void *head, size_t len, Operation *bulk) override;
    bool withdraw(Operation *bulk) override;
    void break_off(Operation *place) override;
    void fetch(Link *link, Remote *remote, Operation *place) override;
    void drop(Link *link, Remote *remote) override;

  private:
    enum class PartKind : uint8_t { packet = 1, announce, grant, data, credit, fetched, ended };
    struct Part { // integers little-endian
        PartKind kind{};
        uint8_t zero[7] = {};
        uint32_t id = 0, place = 0;
        uint64_t length = 0;
    };
    static_assert(sizeof(Part) == 24);

    struct Announced : Remote {
        uint32_t id = 0; // at its sender
    };
    struct Outgoing { // a bulk message of this side, until its receiver has it
        Operation *operation = nullptr;
        uint32_t id = 0, place = 0;
        bool granted = false;
        bool streams = false; // it is one of the streams
        tp::Link<Outgoing> link;
    };
    struct Incoming {                   // one that is being fetched
        Operation *operation = nullptr; // nullptr: it was broken off, its bytes are dropped
        uint32_t id = 0, place = 0;     // of the sender, and of this side
        uint64_t missing = 0;
    };

    Sealed(Shared &shared, Connection &owner, const Channel &channel, tp::Guard guard)
        : shared_(shared), owner_(owner), channel_(channel), guard_(std::move(guard)),
          sequence_(channel.sent) {}

    void on_grant(const Part &part);
    void on_data(const Part &part, const uint8_t *bytes, size_t len);
    void on_credit(const Part &part);
    void on_fetched(const Part &part);
    void on_ended(const Part &part);
    void seal(const Part &part, const void *head, size_t len, tp::IovCursor *from, uint64_t bytes);
    Sent flush_record();
    Sent flush();
    void note(const Part &part);
    bool send_piece();
    void forget(Outgoing *bulk);
    void finish(Outgoing *bulk, bool ok);
    void finish(Incoming *transfer, bool ok);
    void fail_later(Operation *fetched);
    void tell_failed();

    Shared &shared_;
    Connection &owner_;
    const Channel &channel_;
    tp::Guard guard_;
    uint32_t sequence_;                           // of the next packet
    uint64_t room_ = 0;                           // bytes behind the Part of a record
    std::unique_ptr<uint8_t[]> out_, in_;         // a packet being sent, a record being opened
    size_t out_length_ = 0;                       // 0: no packet waits for the wire
    tp::Queue<Part> notes_;                       // grants and ends that wait for it
    tp::List<Outgoing, &Outgoing::link> streams_; // what was granted, in turn
    tp::IdTable<Outgoing> outgoing_;
    tp::IdTable<Incoming> incoming_;
    tp::Pool<Outgoing> outgoing_pool_;
    tp::Pool<Incoming> incoming_pool_;
    tp::EagerWindow window_{stream_window};
    Operation *failed_ = nullptr; // fetches that are over, chained by Operation::wire
};

} // namespace dtrain::rdm
