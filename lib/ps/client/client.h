// The client of the parameter servers, a state machine: it cuts operations into requests, sends and
// repeats them, and completes the operations. channel.h has the part per table and server.
// SPDX-License-Identifier: Apache-2.0
//
// Operations of one table that are in flight together are not ordered against each other, except
// that a clock covers exactly the pushes that were started before it.
// Not thread-safe. A Wire's functions and Transfer::done() must not call back into the client.
#pragma once
#include "ps/placement/partition.h"
#include "ps/table/item.h"
#include "ps/table/protocol.h"
#include "ps/table/table_params.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain::ps {

class Buffer;
class RequestChannel;
struct ClientTable;
struct ChannelContext;
class RowBatch;

// One request in flight, at a fixed address from its first send until it is settled.
struct Outgoing {
    RequestHeader header;
    const void *payload = nullptr;
    uint64_t payload_bytes = 0;
    void *answer = nullptr; // receives the values of the answer; memory of the caller
    uint64_t answer_bytes = 0;
    const Buffer *scratch = nullptr; // the client's buffer with payload and answer, or nullptr
    RequestChannel *channel = nullptr;
    void *wire = nullptr; // for the wire's use, from the first send until it is settled
    // Set by Wire::send() if it has copied the request; then no on_sent() follows.
    bool copied = false;
};

// Transports requests and answers.
class Wire {
  public:
    virtual ~Wire() = default;
    // Sends header and payload, and prepares to receive one answer into `answer` (a repetition
    // whose answer has not come is prepared already). DTRAIN_OK: Client::on_sent() follows once
    // header and payload are no longer read, unless `copied` was set. DTRAIN_ERR_BUSY: nothing
    // happened, the client tries again in on_timer(). Other errors: like BUSY; on_server_lost()
    // will follow.
    virtual Status send(uint32_t server, Outgoing &request) = 0;
    // Stops using the request's memory, then calls Client::on_withdrawn() instead of any pending
    // on_sent() and on_response().
    virtual void withdraw(uint32_t server, Outgoing &request) = 0;
    // The request is complete and its memory may be reused. Answers to its repetitions may still
    // come.
    virtual void settled(uint32_t /*server*/, Outgoing & /*request*/) {}
};

// One operation. Its owner fills it in and keeps it until done().
struct Transfer {
    RequestKind kind = RequestKind::push;
    ClientTable *table = nullptr;
    Range range;                          // ranged kinds; for rows: 0, the number of keys (any);
                                          // files: the checkpoint's id, 0
    uint64_t argument = 0;                // of the header, for kinds that use none of the following
    uint16_t flags = 0;                   // of the header: set_mode
    double weight = 0;                    // of pushes; 0: not given
    uint64_t min_version = 0;             // of pulls
    int32_t priority = 0;                 // higher priorities go first
    std::shared_ptr<const RowBatch> rows; // sparse table: used instead of send and receive
    uint64_t *total_p = nullptr;          // count_rows, set_mode: receives the total
    const void *send = nullptr;           // values to send; may be the same memory as receive
    void *receive = nullptr;
    void (*done)(Transfer *) = nullptr; // called once, when the caller may reuse the memory
    void *owner = nullptr;

    // The outcome.
    Status status = DTRAIN_OK;     // the first failure
    int32_t server = -1;           // the server that caused the failure; -1: none
    uint64_t version = UINT64_MAX; // the lowest version of the answers; 0 if there was none
    std::string text;              // error text of the failure
    uint64_t total = 0;            // count_rows: rows; set_mode: servers that made the change

    // What a server has told about the transfer while it was in flight: it waits for a worker.
    struct Awaited {
        int64_t told_ns = 0; // 0: no server has
        int32_t server = -1;
        uint64_t numbers[2] = {0, 0}; // of Reason::waits
    } awaited;

    // For the client's use.
    Item item;             // requests are cut at the boundaries of items, ...
    uint64_t chunk = 0;    // ... with this many elements or rows per request
    uint64_t requests = 0; // not settled yet
    uint64_t asking = 0;   // keep_rows requests among them; the push waits for their answers
    size_t place = 0;      // in the table's list
};

class Client {
  public:
    struct Config {
        uint32_t worker = 0;
        uint32_t servers = 1;
        uint64_t chunk = chunk_bytes; // of values in one request, at most chunk_bytes
        // Bytes in flight to and from one server once priorities are in use: enough to keep
        // 100 Gbit/s busy for 40 us, from one answer to the next request.
        uint64_t bound = 512 << 10;
        int64_t retry_ns = 0; // option ps.retry; doubles with each repetition, up to 8 times it
    };
    Client(const Config &config, Wire &wire);
    ~Client();
    uint32_t worker() const { return config_.worker; }

    // Where this worker's tables lie, by name; among is set.
    std::map<std::string, Placement> placements() const;
    // Makes the handle, which the client owns; start a `create` with it next. DTRAIN_ERR_LIMIT
    // after max_tables tables.
    // proofs: of this worker's tokens (access.h).
    Status open(const std::string &name, const TableParams &params, ClientTable *&table_p,
                std::string_view proofs = {});
    // ROUND_ROBIN and GREEDY: chooses the server of a new table, given the tables of this client.
    // 0: all servers, since the table takes more than split_bytes; else a server's number + 1.
    uint32_t choose_home(const TableParams &params, uint32_t workers);
    // Completes operations in flight with DTRAIN_ERR_CANCELED, then tells the servers in the
    // background. The handle becomes invalid.
    // failed: it could not be opened.
    void destroy(ClientTable *table, int64_t now, bool failed = false);
    // From now on transfers are ordered by priority.
    void use_priorities();
    // Starts an operation of any kind except destroy and cancel. It may complete at once.
    void start(Transfer &transfer, int64_t now);
    // Completes the operation with this failure as soon as the wire no longer uses its memory.
    // Changes that servers have made stay; a clock still ends.
    void abandon(Transfer &transfer, Status status, const char *text);
    void abandon_all(Status status, const char *text);

    // The first server that has not answered all of the operation's requests; -1: none.
    static int32_t first_unanswered(const Transfer &transfer);

    // False: this is an old answer that was sent twice; the wire must keep waiting.
    bool on_response(Outgoing &request, const ResponseHeader &header, uint64_t payload_bytes,
                     int64_t now);
    // An answer of that server to a request with the flag `packed_answer`. Ignored if the request
    // is no longer in flight.
    void on_packed_answer(uint32_t server, const ResponseHeader &header, const void *payload,
                          uint64_t bytes, int64_t now);
    // The answer to the request is shorter than a header.
    void on_fragment(Outgoing &request, uint64_t bytes, int64_t now);
    void on_sent(Outgoing &request, int64_t now);
    void on_withdrawn(Outgoing &request, int64_t now);
    void on_server_lost(uint32_t server, const char *text);
    void on_timer(int64_t now); // at next_timer() or later
    int64_t next_timer() const; // INT64_MAX: no timer is set
    bool idle() const;          // no request is in flight, not even a destroy
    bool has_transfers() const; // an operation has not ended

  private:
    static bool whole_table(const Transfer &transfer); // whether it goes to every server
    // Calls f(server, part) for each server that holds a part of the operation's range or rows.
    template <class F> static void for_each_part(const Transfer &transfer, F &&f);
    bool reaches_lost_server(Transfer &transfer);
    void cut(Transfer &transfer) const; // sets how it is cut into requests
    // Whether room must be kept before the push: a server may lack room for some of its requests
    // while it or another server applies others.
    static bool keeps_room_first(const Transfer &transfer);
    void sweep();

    Config config_;
    std::vector<std::string> lost_; // by server: why it was lost, or ""
    bool any_lost_ = false;
    std::unique_ptr<ChannelContext> context_;
    std::vector<std::unique_ptr<ClientTable>> tables_;
    uint32_t next_table_ = 0, turn_ = 0; // turn_: of ROUND_ROBIN
};

} // namespace dtrain::ps
