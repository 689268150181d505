// The requests of one client for one table to one server: a queue and a sliding window.
// SPDX-License-Identifier: Apache-2.0
//
// Requests leave in the order of the calls, or of their priorities between two clocks, with at most
// request_window of them between the oldest without an answer and the newest. Under BSP a clock
// leaves when the pulls before it have their answers: so the server cannot go on to a later clock
// while a pull is being repeated. Nothing but the end follows a change of mode before its answer:
// so the server knows in which mode it is due.
#pragma once
#include "ps/client/client.h"
#include "ps/client/turns.h"
#include "ps/table/buffer.h"
#include "ps/table/counters.h"

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

namespace dtrain::ps {

// A part of an operation that is not sent yet; leaves as one request, or chunk by chunk.
struct Piece {
    Transfer *transfer = nullptr; // nullptr: nobody waits for it
    RequestKind kind = RequestKind::push;
    Range range = {};
    uint64_t clock = 0;
    uint32_t pushes = 0;   // clock
    uint16_t flags = 0;    // of the header
    uint64_t argument = 0; // of the header
    bool begins = true;    // nothing of it was sent yet
    bool waits = false;    // for the room of its push, on all servers
    uint64_t keeps = 0;    // the push that keeps room on the server, by the lane's count; 0: none
};

// What the lanes of a client have in common.
struct LaneContext {
    Wire &wire;
    uint32_t worker;
    int64_t retry_ns;
    Turns turns;
    int64_t next_timer = INT64_MAX; // of the lane that is due first, or earlier
    uint32_t busy = 0;              // lanes that are not idle
};

class Lane {
  public:
    Lane(ClientTable &table, uint32_t server, LaneContext &context);
    ~Lane();

    void add(const Piece &piece); // pump() sends it
    void add_clock(Piece piece);  // all but how many pushes it has
    void pump(int64_t now);
    int32_t urgency() const; // the highest priority of what waits
    // The request with that number, if its answer is due in a pack; or nullptr.
    Outgoing *packed_request(uint64_t sequence);
    bool on_response(Outgoing &request, const ResponseHeader &header, uint64_t payload_bytes,
                     int64_t now);
    void on_fragment(Outgoing &request, uint64_t bytes, int64_t now);
    void on_sent(Outgoing &request);
    void on_withdrawn(Outgoing &request, int64_t now);
    void on_timer(int64_t now);
    int64_t next_timer() const { return next_timer_; }
    const Counters &counters() const { return counters_; }
    uint64_t told() const { return told_; }
    bool carries(const Transfer &transfer) const;
    // Takes the transfer out: returns how many of its requests are settled by that. Those that use
    // its memory follow when the wire has let go of it.
    uint64_t abandon(Transfer &transfer);
    bool limited() const { return limited_; }
    // A server has no room for the push, of which nothing has left yet: nothing of it will.
    void drop_push(Transfer &transfer);
    // Whether the server has refused the push, or some of it; forgotten by that.
    enum class Refused : uint8_t { no, in_part, whole };
    Refused take_refusal(const Transfer &transfer);
    // The server is lost. Every transfer has been abandoned here before.
    void close();
    bool idle() const { return queue_.empty() && oldest_ == next_; } // nothing is in flight
    ClientTable &table() const { return table_; }

  private:
    enum class State : uint8_t {
        free,
        active,     // waits for its answer
        answered,   // waits for the end of its last send
        withdrawing // will be a cancel, or free once the lane is closed
    };
    struct Slot : Outgoing {
        Transfer *transfer = nullptr;
        int64_t retry_at = 0, sent_at = 0;
        uint32_t sends = 0;    // in the wire
        uint32_t attempts = 0; // made
        State state = State::free;
        bool pulls = false; // is or was a pull
        uint64_t keeps = 0; // as Piece's
        uint64_t moves = 0; // bytes that count in the turns
        uint64_t due = 0;   // bytes of values that its answer has, if it has any
        Range rows = {};    // of a sparse table: which of the transfer's
        // Where an answer lands that may be a text, and then goes if it is none.
        std::unique_ptr<char[]> room;
        void *into = nullptr;
    };

    // What became of a push here, if it was not applied as a whole.
    struct Refusal {
        const Transfer *transfer;
        bool all; // nothing of it was applied
    };

    Slot &slot(uint64_t sequence) { return slots_[sequence % request_window]; }
    bool may_leave(const Piece &piece) const;
    bool its_turn(const Piece &piece, int64_t now);
    uint64_t moved_by(const Piece &piece) const; // by its next request, as far as they count
    void go_on(int64_t now);                     // a request has ended
    Slot &launch(Piece &piece);
    void attach(const Range &chunk, Slot &slot); // the caller's memory, or scratch
    void attach_narrow(const Range &chunk, Slot &slot);
    void deliver(const Slot &slot) const; // what a pull has brought, where it is not yet
    char *scratch_of(Slot &slot, uint64_t bytes);
    void attach_rows(const Range &rows, Slot &slot);
    static void make_room_for_text(Slot &slot);
    bool learn_states(const void *payload, uint64_t bytes); // false: not those of other servers
    void send(Slot &slot, int64_t now);
    void repeat_at(Slot &slot, int64_t time);
    void look_at(int64_t time); // on_timer()
    void count(const Slot &slot, const ResponseHeader &header, uint64_t payload_bytes, int64_t now);
    static uint64_t due(const Slot &slot, const ResponseHeader &header); // bytes after the header
    bool is_fine(const Slot &slot, const ResponseHeader &header, uint64_t payload_bytes) const;
    void report(const Slot &slot, const ResponseHeader &header, uint64_t payload_bytes);
    void refuse(const Slot &slot, const ResponseHeader &header, uint64_t payload_bytes);
    void report_failure(const Slot &slot, Status status, const char *why);
    void end(Slot &slot, int64_t now);
    void settle(Slot &slot);
    void withdraw(Slot &slot);
    uint64_t chunk_of(const Piece &piece) const;
    uint64_t requests_of(const Piece &piece) const;
    void queue(const Piece &piece);
    void add_keeping(Piece piece);
    void note_room(const Slot &slot, int64_t now); // the server has said whether it has some
    void end_kept(uint64_t push, uint64_t requests);
    std::deque<Piece>::const_iterator place_of(const Piece &piece) const;
    void forget_pushes(const Piece &piece);
    void count_busy(); // whenever it may have become idle, or not

    ClientTable &table_;
    const uint32_t server_;
    LaneContext &context_;
    std::deque<Piece> queue_;
    std::array<Slot, request_window> slots_;
    std::array<Buffer, request_window> scratch_; // by slot
    uint64_t next_ = 0, oldest_ = 0; // sequence numbers: of the next request, the oldest in flight
    uint32_t pulls_ = 0;             // in flight
    uint64_t changing_ = UINT64_MAX; // the change of mode in flight
    uint32_t pushes_ = 0;            // requests that push in the worker's current clock
    int64_t next_timer_ = INT64_MAX;
    int64_t held_since_ = INT64_MAX;        // it is not its turn
    bool closed_ = false, limited_ = false; // new rows may lack room there
    uint64_t kept_ = 0;                     // pushes that have kept room so far
    std::map<uint64_t, uint64_t> keeping_;  // such pushes under way: requests not settled yet
    std::vector<Refusal> refusals_;
    bool busy_ = false;   // counted
    uint64_t pulled_ = 0; // updates that the last pull has seen
    uint64_t told_ = 0;   // QUORUM: the server's clock, as it has said
    Counters counters_;
};

} // namespace dtrain::ps
