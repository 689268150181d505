// One table on a server: its workers, its contents, waiting requests and the answers given.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/checkpoint/archive.h"
#include "ps/placement/key_partition.h"
#include "ps/server/answered.h"
#include "ps/server/metrics_text.h"
#include "ps/server/peer_memory.h"
#include "ps/storage/shard.h"
#include "ps/storage/sparse_shard.h"
#include "ps/table/counters.h"
#include "ps/table/item.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dtrain::ps {

// An answer that the server sends. payload belongs to `hold`, which must be kept until it was sent.
struct Response {
    uint32_t worker = 0;
    ResponseHeader header;
    const void *payload = nullptr;
    uint64_t bytes = 0;
    std::shared_ptr<const Buffer> hold;
    Charge charge;       // for hold, unless it is memory of the shard
    bool packed = false; // sent in a pack with others
};
using Responses = std::vector<Response>; // reused between steps to avoid allocations

class ServerTable {
  public:
    struct Identity {
        uint32_t table = 0, server = 0, workers = 0;
        std::string name;
        TableParams params;
        bool limited = false; // the server has a memory limit
    };
    // The values: one of the two, or none if there was no memory.
    struct Contents {
        std::unique_ptr<Shard> shard;
        std::unique_ptr<SparseShard> rows;
    };
    // partition: of the keys of a sparse table; for a dense one only its version is used. archive:
    // may be nullptr. peers: an array by worker. Both must outlive the table.
    ServerTable(const Identity &identity, const KeyPartition &partition, Contents contents,
                Archive *archive, PeerMemory *peers);
    ~ServerTable();

    // A create request of that worker. All are answered when the last present worker has asked, or
    // as soon as the table turns out to be impossible to make.
    void join(const RequestHeader &header, const std::string &name, const TableParams &params,
              Responses &out);
    // Answers every create request, past and future, with this error, and frees the contents.
    void refuse(Reason reason, uint64_t number0, uint64_t number1, Responses &out);
    void refuse(Status status, const char *text, Responses &out);
    // Any other request except destroy; check_request() must have accepted it.
    void request(const RequestHeader &header, const void *payload, uint64_t bytes, Responses &out);
    void on_archived(std::unique_ptr<ArchiveJob> &&job, Responses &out); // as in Server
    uint64_t reserve(ArchiveJob &job, uint64_t bytes); // charges the job; 0: it was canceled
    void leave(uint32_t worker, Responses &out);       // it destroyed its handle or left the job
    void lose(uint32_t worker, Responses &out);
    bool unused() const { return present_ == 0; } // all workers have left or were lost
    bool member(uint32_t worker) const { return members_[worker].present; }
    // Bytes charged to the server's limit: rows when they are made, everything else at creation.
    uint64_t bytes() const {
        return copies_ + (rows_ != nullptr ? rows_->memory() + rows_->kept_bytes() : bytes_);
    }
    uint64_t updates() const { return rows_ != nullptr ? rows_->updates() : shard_->updates(); }
    TableReport report() const;
    // Whether a request of this kind may need more memory.
    bool grows(RequestKind kind) const {
        return rows_ != nullptr || kind == RequestKind::set_mode || kind == RequestKind::save ||
               kind == RequestKind::clock; // a save may wait for the clock
    }
    void set_room(uint64_t bytes) { // the bytes that the server has left
        room_ = bytes;
        if (rows_ != nullptr) rows_->set_limit(rows_->memory() + rows_->kept_bytes() + bytes);
    }

  private:
    struct Text {
        std::shared_ptr<const Buffer> text;
        Charge charge;
    };
    struct Member {
        bool present = true, joined = false, lost = false;
        uint32_t agreed = 0;                // number of the last mode change that it asked for
        std::unique_ptr<Answered> answered; // set from its first request on
        uint64_t pulled = 0;                // updates() at its last pull
        // Error texts by sequence number, for answers that may have to be repeated.
        std::map<uint64_t, Text> texts;
        std::map<uint64_t, KeptRoom> rooms; // for pushes in flight, by the worker's number for them
        uint64_t restores_from = 0;         // restore requests before this one are canceled
        Counters counters;
    };
    // The current restore, from the request until it is taken over or dropped; one at a time.
    struct Restore {
        uint32_t worker;
        uint64_t sequence;
        std::unique_ptr<ArchiveJob> read; // set when all data has been read
    };
    struct Waiting {
        RequestHeader header;
        Charge charge;
    };
    struct Answer {
        Reason reason = Reason::none;
        uint64_t numbers[2] = {0, 0};
    };

    void check_joined(Responses &out);
    void remove(uint32_t worker);
    uint64_t dense_bytes(const Shard *shard) const { // 0 without one
        if (shard == nullptr) return 0;
        return Shard::bytes_needed(identity_.params, shard->part().count(), identity_.workers);
    }
    bool unmade() const { return shard_ == nullptr && rows_ == nullptr; }
    Answer check(const RequestHeader &header, const void *payload, uint64_t bytes) const;
    Answer check_range(const RequestHeader &header, uint64_t bytes) const;
    Answer check_rows(const RequestHeader &header, const void *payload, uint64_t bytes) const;
    void start(const RequestHeader &header, const void *payload, Answered::Entry &entry,
               Responses &out);
    void push(const RequestHeader &header, const void *payload, Answered::Entry &entry,
              Responses &out);
    // Applies or collects a push.
    Answer take(const RequestHeader &header, const void *payload, Answered::Entry &entry);
    // The answer to a push whose value for `item`, an element or a key, is not finite.
    Answer spoilt(const RequestHeader &header, uint64_t item, Answered::Entry &entry);
    Answer take_rows(const RequestHeader &header, const void *payload, Answered::Entry &entry);
    Answer change_rows(const RequestHeader &header, const void *payload); // and count_rows
    // Whether new rows may lack room.
    bool lacks_room_at_times() const {
        return rows_ != nullptr && (identity_.limited || identity_.params.max_bytes > 0);
    }
    void keep_rows(const RequestHeader &header, const void *payload, Answered::Entry &entry,
                   Responses &out);
    Answer take_room(const RequestHeader &header, const uint64_t *keys);
    void end_keeping(Member &member, uint64_t push);
    void end_keeping(Member &member); // for all pushes of the worker
    Answer after_rows(Reason reason);
    void pull(const RequestHeader &header, const void *payload, Answered::Entry &entry,
              Responses &out);
    void set_state(const RequestHeader &header, const void *payload, Answered::Entry &entry,
                   Responses &out);
    void set_rate(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    Answer attach(const RequestHeader &header, Response &response);
    void clock(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void cancel(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    // park() keeps a request until it can be answered. hold() drops it and asks for it again later.
    // If there is no room for the note, the client repeats the request without being asked.
    void park(const RequestHeader &header, Answered::Entry &entry);
    void hold(const RequestHeader &header, Answered::Entry &entry);
    bool keep(std::vector<Waiting> &list, const RequestHeader &header);
    bool copies(const RequestHeader &header) const; // whether its answer needs a copy of values
    bool may_answer(const RequestHeader &header) const {
        return peers_[header.worker].limit() == 0 || fits_limit(header);
    }
    bool fits_limit(const RequestHeader &header) const;
    Answer over_limit(uint32_t worker) const;
    Verdict may_push(const RequestHeader &header) const;
    Verdict may_pull(const RequestHeader &header) const;
    bool fits(const RequestHeader &header) const; // whether the weight of a push or clock is valid
    double weight_of(const RequestHeader &header) const;
    // The values of a push in computed_dtype(): the payload, or a copy that is valid until the next
    // call.
    const void *values_of(const RequestHeader &header, const void *sent);
    Answer stale(const RequestHeader &header); // counts the request as stale
    uint32_t sum_of(const RequestHeader &header) const;
    void apply_clock();
    Answer check_mode(const RequestHeader &header, TableParams &wanted) const;
    void set_mode(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void refuse_mode(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void answer_meeting(const RequestHeader &header, const Answer &answer, Responses &out);
    void meet(Responses &out); // acts if all have asked for a mode, or a lost worker never will
    void end_meeting(const Answer &answer, Responses &out);
    void change_mode(const RequestHeader &header);
    void settle(Responses &out); // call it after a worker's clock may have moved
    void release(Responses &out);
    Answer refusal(Verdict verdict, const RequestHeader &header) const;
    // payload: for pulls of rows, whose answers need the keys.
    void finish(const RequestHeader &header, Answered::Entry &entry, const Answer &answer,
                Responses &out, const void *payload = nullptr);
    void respond(const RequestHeader &header, const Answer &answer, Responses &out,
                 const void *payload = nullptr);
    void archive(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void save(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void restore(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void adopt(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void discard(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    // Whether the current restore is of that worker, by a request before that one.
    bool restores(uint32_t worker, uint64_t before = UINT64_MAX) const {
        return restore_ && restore_->worker == worker && restore_->sequence < before;
    }
    bool restores_by(const RequestHeader &header) const {
        return restores(header.worker) && restore_->sequence == header.sequence;
    }
    void drop_restore();
    Verdict may_go_on(const RequestHeader &header) const; // for requests in parked_
    void wait_ready(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void set_ready(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    std::unique_ptr<ArchiveJob> make_job(const RequestHeader &header) const; // without an image
    void end(GradualCopy &copy);                                             // of the contents
    // Starts the job. False: the worker was answered with an error.
    bool begin(std::unique_ptr<ArchiveJob> job, Answered::Entry &entry, Responses &out);
    void attach_text(Response &response) const;
    Answer attach_states(Response &response) const; // the function's states, to a create request
    Answer told(Status status, const char *text);   // keeps the text for attach_text()
    void keep_text(const RequestHeader &header, Answered::Entry &entry); // for repeated answers
    Answer failure_told();                                               // a function's failure
    const FunctionCall::Failure &function_failure() const;
    void note_broken(uint64_t clock);
    Answer attach_values(const RequestHeader &header, const void *payload, Response &response);
    void tell(const RequestHeader &header, Answered::Entry &entry, Status status, const char *text,
              Responses &out);
    Answer attach_rows(const RequestHeader &header, const void *keys, Response &response);

    Identity identity_;
    KeyPartition partition_;
    uint64_t bytes_, copies_ = 0;       // copies_: bytes of images being saved or restored
    std::unique_ptr<Shard> shard_;      // dense table
    std::unique_ptr<SparseShard> rows_; // sparse table
    Answer refused_;                    // why the table could not be made
    bool ready_ = false;                // a worker has called set_ready
    Archive *archive_;
    PeerMemory *const peers_; // by worker
    std::optional<Restore> restore_;
    std::shared_ptr<const Buffer> told_; // the last error text, NUL-terminated
    FunctionCall::Failure broken_;       // set if a clock's update was only partly applied
    Clocks clocks_;
    ClockUpdate update_;      // scratch
    std::vector<char> taken_; // scratch
    std::vector<Member> members_;
    uint32_t present_, joined_ = 0; // workers that are present, and those that have joined
    uint64_t room_ = UINT64_MAX;    // bytes that the server has left
    uint32_t changed_ = 0;          // the last mode change that was made
    uint32_t refused_change_ = 0, refuser_ = 0; // the last refused mode change, and by whom
    std::vector<RequestHeader> meeting_;        // waiting set_mode requests, at most one per worker
    std::vector<RequestHeader> joining_;        // create requests to answer
    std::vector<Waiting> parked_, held_;        // together at most request_window per worker
};

} // namespace dtrain::ps
