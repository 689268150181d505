// A channel: the requests of one client for one table to one server, a queue and a sliding window.
// SPDX-License-Identifier: Apache-2.0
//
// Requests are sent in the order of the calls, or by priority between two clocks, with at most
// request_window of them between the oldest unanswered one and the newest. Under BSP a clock is
// sent after the pulls before it were answered, so that the server cannot go on to a later clock
// while a pull is being repeated. After a change of mode only a destroy is sent before the answer,
// so that the server knows the mode of every request.
#pragma once
#include "ps/client/client.h"
#include "ps/client/send_scheduler.h"
#include "ps/table/buffer.h"
#include "ps/table/counters.h"

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

namespace dtrain::ps {

// A part of an operation that is not sent yet. It is sent as one request or chunk by chunk.
struct Piece {
    Transfer *transfer = nullptr; // nullptr: no operation waits for it
    RequestKind kind = RequestKind::push;
    Range range = {};
    uint64_t clock = 0;
    uint32_t pushes = 0;   // of the header, for a clock
    uint16_t flags = 0;    // of the header
    uint64_t argument = 0; // of the header
    bool begins = true;    // no chunk of it was sent yet
    bool waits = false;    // must wait until all servers have kept room for the push
    uint64_t keeps = 0;    // the channel's number for a push that keeps room there; 0: none
};

// State that the channels of a client share.
struct ChannelContext {
    Wire &wire;
    uint32_t worker;
    int64_t retry_ns;
    SendScheduler scheduler;
    int64_t next_timer = INT64_MAX; // at or before the earliest timer of all channels
    uint32_t busy = 0;              // channels that are not idle
};

class RequestChannel {
  public:
    RequestChannel(ClientTable &table, uint32_t server, ChannelContext &context);
    ~RequestChannel();

    void add(const Piece &piece); // queues it; pump() sends it
    void add_clock(Piece piece);  // the same; sets its number of pushes
    void pump(int64_t now);
    int32_t urgency() const; // the highest priority in the queue
    // The request with that number if its answer is expected in a pack, or nullptr.
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
    // Removes the transfer from the channel. Returns how many of its requests this has settled.
    // Requests that use its memory are settled when the wire no longer uses it.
    uint64_t abandon(Transfer &transfer);
    bool limited() const { return limited_; }
    // Whether this part of the table has the values of the job's last generation.
    bool inherited() const { return inherited_; }
    // Drops a push for which a server has no room. No part of it was sent yet.
    void drop_push(Transfer &transfer);
    // Whether the server has refused the push or a part of it, or has lost the table's values.
    // Forgets the refusal.
    enum class Refused : uint8_t { no, in_part, whole, lost };
    Refused take_refusal(const Transfer &transfer);
    // Called when the server is lost, after all transfers of the channel were abandoned.
    void close();
    bool idle() const { return queue_.empty() && oldest_ == next_; } // nothing is in flight
    ClientTable &table() const { return table_; }

  private:
    enum class State : uint8_t {
        free,
        active,      // waits for its answer
        answered,    // waits for the completion of its last send
        withdrawing, // becomes a cancel, or free if the channel is closed
        ending       // was answered; becomes free when the wire has returned its memory
    };
    struct Slot : Outgoing {
        Transfer *transfer = nullptr;
        int64_t retry_at = 0, sent_at = 0;
        uint32_t sends = 0;    // sends that the wire has not completed
        uint32_t attempts = 0; // sends so far
        State state = State::free;
        bool pulls = false; // is or was a pull
        uint64_t keeps = 0; // as in Piece
        uint64_t moves = 0; // bytes that count towards the bound of SendScheduler
        uint64_t due = 0;   // expected bytes of values in the answer, if it has values
        Range rows = {};    // sparse table: the request's rows of the transfer
        // Landing buffer for an answer that may be an error text; copied to `into` if it is not.
        std::unique_ptr<char[]> room;
        void *into = nullptr;
    };

    // A push that this server did not apply completely.
    struct Refusal {
        const Transfer *transfer;
        Refused how; // not `no`
    };

    Slot &slot(uint64_t sequence) { return slots_[sequence % request_window]; }
    bool may_leave(const Piece &piece) const;
    bool its_turn(const Piece &piece, int64_t now);
    uint64_t
    moved_by(const Piece &piece) const; // bytes of its next request for the bound of SendScheduler
    void go_on(int64_t now);            // after a request has ended
    Slot &launch(Piece &piece);
    void attach(const Range &chunk, Slot &slot); // sets payload and answer memory
    void attach_narrow(const Range &chunk, Slot &slot);
    void deliver(const Slot &slot) const; // copies pulled values, unless received in place
    char *scratch_of(Slot &slot, uint64_t bytes);
    void attach_rows(const Range &rows, Slot &slot);
    static void make_room_for_text(Slot &slot);
    bool learn_states(const void *payload, uint64_t bytes); // false: they differ between servers
    void send(Slot &slot, int64_t now);
    void repeat_at(Slot &slot, int64_t time);
    void look_at(int64_t time); // sets the timer
    void count(const Slot &slot, const ResponseHeader &header, uint64_t payload_bytes, int64_t now);
    // The expected bytes after the header.
    static uint64_t due(const Slot &slot, const ResponseHeader &header);
    bool is_fine(const Slot &slot, const ResponseHeader &header, uint64_t payload_bytes) const;
    void report(const Slot &slot, const ResponseHeader &header, uint64_t payload_bytes);
    void refuse(const Slot &slot, const ResponseHeader &header, uint64_t payload_bytes);
    // lost: the server has lost the table's values.
    void report_failure(const Slot &slot, Status status, const char *why, bool lost = false);
    void end(Slot &slot, int64_t now);
    void settle(Slot &slot);
    void withdraw(Slot &slot);
    uint64_t chunk_of(const Piece &piece) const;
    uint64_t requests_of(const Piece &piece) const;
    void queue(const Piece &piece);
    void add_keeping(Piece piece);
    void note_room(const Slot &slot, int64_t now); // after the answer to a keep_rows
    void end_kept(uint64_t push, uint64_t requests);
    std::deque<Piece>::const_iterator place_of(const Piece &piece) const;
    void forget_pushes(const Piece &piece);
    void count_busy(); // call whenever idle() may have changed

    ClientTable &table_;
    const uint32_t server_;
    ChannelContext &context_;
    std::deque<Piece> queue_;
    std::array<Slot, request_window> slots_;
    std::array<Buffer, request_window> scratch_; // by slot
    uint64_t next_ = 0, oldest_ = 0; // sequence numbers: of the next request, the oldest in flight
    uint32_t pulls_ = 0;             // pulls in flight
    uint64_t changing_ = UINT64_MAX; // sequence number of the mode change in flight
    uint32_t pushes_ = 0;            // push requests in the worker's current clock
    int64_t next_timer_ = INT64_MAX;
    int64_t held_since_ = INT64_MAX; // when SendScheduler began to hold the channel
    bool inherited_ = false;
    bool closed_ = false, limited_ = false; // limited_: the server may lack room for new rows
    uint64_t kept_ = 0;                     // number of pushes that have kept room so far
    std::map<uint64_t, uint64_t> keeping_;  // by such a push in flight: its unsettled requests
    std::vector<Refusal> refusals_;
    bool busy_ = false;   // is counted in ChannelContext::busy
    uint64_t pulled_ = 0; // updates that the last pull has seen
    uint64_t told_ = 0;   // QUORUM: the server's clock, as last reported
    Counters counters_;
};

} // namespace dtrain::ps
