// The client of the parameter servers: cuts operations into requests, sends them, sends them again,
// and completes the operations. A state machine; see lane.h for what happens per table and server.
// SPDX-License-Identifier: Apache-2.0
//
// Operations of one table that are in flight together are not ordered against each other, except
// that a clock covers exactly the pushes that were started before it.
// No thread-safety of its own. A Wire's functions and Transfer::done() must not call back into the
// client.
#pragma once
#include "ps/placement/partition.h"
#include "ps/table/item.h"
#include "ps/table/protocol.h"
#include "ps/table/table_params.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dtrain::ps {

class Buffer;
class Lane;
struct ClientTable;
struct LaneContext;
class RowBatch;

// One request on its way, at a fixed address from its first send until it is settled.
struct Outgoing {
    RequestHeader header;
    const void *payload = nullptr;
    uint64_t payload_bytes = 0;
    void *answer = nullptr; // where the values of the answer go: the caller's memory
    uint64_t answer_bytes = 0;
    const Buffer *scratch = nullptr; // of the client's own, that they lie in; or none
    Lane *lane = nullptr;
    void *wire = nullptr; // the wire's own, from the first send until it is settled
    // Set by Wire::send(): it has taken a copy, so no on_sent() follows.
    bool copied = false;
};

// What carries requests and answers.
class Wire {
  public:
    virtual ~Wire() = default;
    // Sends header and payload, and sees to it that one answer can land in `answer` (already so
    // when this is a repetition whose answer has not come). DTRAIN_OK: Client::on_sent() follows,
    // when header and payload are no longer read (unless it sets `copied`). DTRAIN_ERR_BUSY:
    // nothing happened, the client tries again in on_timer(). Another error: as BUSY;
    // on_server_lost() is about to tell.
    virtual Status send(uint32_t server, Outgoing &request) = 0;
    // Stops using the request's memory; then calls Client::on_withdrawn(), in place of the
    // on_sent() and on_response() that are still due.
    virtual void withdraw(uint32_t server, Outgoing &request) = 0;
    // The request is over and its memory may serve another one. Answers to its repetitions may
    // still come.
    virtual void settled(uint32_t /*server*/, Outgoing & /*request*/) {}
};

// One operation: filled by its owner, who keeps it until done().
struct Transfer {
    RequestKind kind = RequestKind::push;
    ClientTable *table = nullptr;
    Range range;                          // of kinds that have one; of rows: 0, any number of keys;
                                          // files: the checkpoint's id, 0
    uint64_t argument = 0;                // of the header, of kinds without the following
    uint16_t flags = 0;                   // of the header: set_mode
    double weight = 0;                    // of pushes; 0: not said
    uint64_t min_version = 0;             // of pulls
    int32_t priority = 0;                 // higher goes first
    std::shared_ptr<const RowBatch> rows; // of a sparse table: in place of the memory below
    uint64_t *total_p = nullptr;          // count_rows, set_mode: where the total goes
    const void *send = nullptr; // values to send; with receive they may be the same memory
    void *receive = nullptr;
    void (*done)(Transfer *) = nullptr; // once, when the memory is the caller's again
    void *owner = nullptr;

    // The outcome.
    Status status = DTRAIN_OK;     // the first failure
    int32_t server = -1;           // whose fault it was
    uint64_t version = UINT64_MAX; // the lowest of the answers; 0 when there was none
    std::string text;              // of the failure
    uint64_t total = 0;            // count_rows: rows; set_mode: servers that have made it

    // The client's own.
    Item item;             // what its requests are cut between, ...
    uint64_t chunk = 0;    // ... and how many elements of it, or rows, one has
    uint64_t requests = 0; // not settled yet
    uint64_t asking = 0;   // of these, those that keep room: before their answers nothing is pushed
    size_t place = 0;      // in the table's list
};

class Client {
  public:
    struct Config {
        uint32_t worker = 0;
        uint32_t servers = 1;
        uint64_t chunk = chunk_bytes; // of values in one request, at most chunk_bytes
        // In flight to and from one server once priorities are in use: enough to keep 100 Gbit/s
        // busy for 40 us, until an answer has come and the next request left.
        uint64_t bound = 512 << 10;
        int64_t retry_ns = 0; // option ps.retry; doubled up to 8 times for each repetition
    };
    Client(const Config &config, Wire &wire);
    ~Client();
    uint32_t worker() const { return config_.worker; }

    // Makes the handle; start a `create` with it next. The owner of all tables is the client.
    // DTRAIN_ERR_LIMIT after max_tables of them.
    Status open(const std::string &name, const TableParams &params, ClientTable *&table_p);
    // ROUND_ROBIN and GREEDY: where to put a new table, by the tables that this client has. 0: on
    // all servers, since it takes more than split_bytes; else a server's number + 1.
    uint32_t choose_home(const TableParams &params, uint32_t workers);
    // Completes what is in flight with DTRAIN_ERR_CANCELED, then tells the servers in the
    // background; the handle is invalid from now on.
    void destroy(ClientTable *table, int64_t now);
    // From now on transfers go by their priorities.
    void use_priorities();
    // Begins; may complete at once. Any kind but destroy and cancel.
    void start(Transfer &transfer, int64_t now);
    // Completes it early with this failure, as soon as the wire has let go of the memory. What
    // servers had done is not undone; a clock still ends.
    void abandon(Transfer &transfer, Status status, const char *text);
    void abandon_all(Status status, const char *text);

    // A server that has not answered all of it; -1: none.
    static int32_t first_unanswered(const Transfer &transfer);

    // False: not the answer that is due (an old one, sent twice); the wire shall go on waiting.
    bool on_response(Outgoing &request, const ResponseHeader &header, uint64_t payload_bytes,
                     int64_t now);
    // What that server says to some request with the flag `packed_answer`, if it is in flight.
    void on_packed_answer(uint32_t server, const ResponseHeader &header, const void *payload,
                          uint64_t bytes, int64_t now);
    // What came for the request is shorter than a header: bytes of it.
    void on_fragment(Outgoing &request, uint64_t bytes, int64_t now);
    void on_sent(Outgoing &request, int64_t now);
    void on_withdrawn(Outgoing &request, int64_t now);
    void on_server_lost(uint32_t server, const char *text);
    void on_timer(int64_t now); // at next_timer() or later
    int64_t next_timer() const; // INT64_MAX: nothing to wait for
    bool idle() const;          // nothing is in flight, destroys included

  private:
    static bool whole_table(const Transfer &transfer); // it goes to every server
    // f(server, part) for each server that has some of it.
    template <class F> static void for_each_part(const Transfer &transfer, F &&f);
    bool reaches_lost_server(Transfer &transfer);
    void cut(Transfer &transfer) const; // into requests
    // A push that one server may refuse for want of room while others, or the same, apply some.
    static bool keeps_room_first(const Transfer &transfer);
    void sweep();

    Config config_;
    std::vector<std::string> lost_; // by server: why, or ""
    bool any_lost_ = false;
    std::unique_ptr<LaneContext> context_;
    std::vector<std::unique_ptr<ClientTable>> tables_;
    uint32_t next_table_ = 0, turn_ = 0; // of ROUND_ROBIN
};

} // namespace dtrain::ps
