// One table as its server sees it: who made it, what waits, what was answered.
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

// What a server wants sent. payload belongs to a shard; keep `hold` until it has been sent.
struct Response {
    uint32_t worker = 0;
    ResponseHeader header;
    const void *payload = nullptr;
    uint64_t bytes = 0;
    std::shared_ptr<const Buffer> hold;
    Charge charge;       // of hold, unless it is the shard's
    bool packed = false; // goes with others
};
using Responses = std::vector<Response>; // reused from step to step, so that steps allocate nothing

class ServerTable {
  public:
    struct Identity {
        uint32_t table = 0, server = 0, workers = 0;
        std::string name;
        TableParams params;
        bool limited = false; // the server has a limit
    };
    // What it holds: one of them, or none when there is no memory.
    struct Contents {
        std::unique_ptr<Shard> shard;
        std::unique_ptr<SparseShard> rows;
    };
    // partition: of its keys, if it is sparse; else only the version counts. archive: nullptr, or
    // outlives the table, as peers does, an array by worker.
    ServerTable(const Identity &identity, const KeyPartition &partition, Contents contents,
                Archive *archive, PeerMemory *peers);
    ~ServerTable();

    // A create request of that worker. All are answered when the last worker that is present has
    // asked, or as soon as it is clear that the table cannot be made.
    void join(const RequestHeader &header, const std::string &name, const TableParams &params,
              Responses &out);
    // Every create request, past and to come, is answered with this; the shard is given up.
    void refuse(Reason reason, uint64_t number0, uint64_t number1, Responses &out);
    void refuse(Status status, const char *text, Responses &out);
    // Any other request but destroy, checked by check_request().
    void request(const RequestHeader &header, const void *payload, uint64_t bytes, Responses &out);
    void on_archived(std::unique_ptr<ArchiveJob> &&job, Responses &out); // as Server's
    uint64_t reserve(ArchiveJob &job, uint64_t bytes); // charged to it; 0: it was given up
    void leave(uint32_t worker, Responses &out);       // destroyed its handle, or left the job
    void lose(uint32_t worker, Responses &out);
    bool unused() const { return present_ == 0; } // all have left or were lost
    bool member(uint32_t worker) const { return members_[worker].present; }
    // Charged to the server's limit: rows as they are made, the rest at once.
    uint64_t bytes() const {
        return copies_ + (rows_ != nullptr ? rows_->memory() + rows_->kept_bytes() : bytes_);
    }
    uint64_t updates() const { return rows_ != nullptr ? rows_->updates() : shard_->updates(); }
    TableReport report() const;
    // A request may need more memory.
    bool grows(RequestKind kind) const {
        return rows_ != nullptr || kind == RequestKind::set_mode || kind == RequestKind::save ||
               kind == RequestKind::clock; // which a save may wait for
    }
    void set_room(uint64_t bytes) { // that the server has left
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
        uint32_t agreed = 0;                // the last change of mode that it has asked for
        std::unique_ptr<Answered> answered; // from its first request on
        uint64_t pulled = 0;                // updates() when it pulled last
        // By sequence number: of answers that may have to be given again.
        std::map<uint64_t, Text> texts;
        std::map<uint64_t, KeptRoom> rooms; // of pushes under way, as the worker numbers them
        uint64_t restores_from = 0;         // requests to restore before this one are over
        Counters counters;
    };
    // One at a time: from the request on, until it is taken over or dropped.
    struct Restore {
        uint32_t worker;
        uint64_t sequence;
        std::unique_ptr<ArchiveJob> read; // once all of it has been
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
    // What becomes of a push that has no finite number for an element, or in the row of a key.
    Answer spoilt(const RequestHeader &header, uint64_t item, Answered::Entry &entry);
    Answer take_rows(const RequestHeader &header, const void *payload, Answered::Entry &entry);
    Answer change_rows(const RequestHeader &header, const void *payload); // and count_rows
    bool lacks_room_at_times() const {
        return rows_ != nullptr && (identity_.limited || identity_.params.max_bytes > 0);
    }
    void keep_rows(const RequestHeader &header, const void *payload, Answered::Entry &entry,
                   Responses &out);
    Answer take_room(const RequestHeader &header, const uint64_t *keys);
    void end_keeping(Member &member, uint64_t push);
    void end_keeping(Member &member); // of all its pushes
    Answer after_rows(Reason reason);
    void pull(const RequestHeader &header, const void *payload, Answered::Entry &entry,
              Responses &out);
    void set_state(const RequestHeader &header, const void *payload, Answered::Entry &entry,
                   Responses &out);
    void set_rate(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    Answer attach(const RequestHeader &header, Response &response);
    void clock(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void cancel(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    // What waits here, or is dropped and will be asked for; without room it comes again by itself.
    void park(const RequestHeader &header, Answered::Entry &entry);
    void hold(const RequestHeader &header, Answered::Entry &entry);
    bool keep(std::vector<Waiting> &list, const RequestHeader &header);
    bool copies(const RequestHeader &header) const; // values, for its answer
    bool may_answer(const RequestHeader &header) const {
        return peers_[header.worker].limit() == 0 || fits_limit(header);
    }
    bool fits_limit(const RequestHeader &header) const;
    Answer over_limit(uint32_t worker) const;
    Verdict may_push(const RequestHeader &header) const;
    Verdict may_pull(const RequestHeader &header) const;
    bool fits(const RequestHeader &header) const; // the weight of a push or clock
    double weight_of(const RequestHeader &header) const;
    // The values of a push in the table's type: what was sent, or a copy until the next call.
    const void *values_of(const RequestHeader &header, const void *sent);
    Answer stale(const RequestHeader &header); // counts it
    uint32_t sum_of(const RequestHeader &header) const;
    void apply_clock();
    Answer check_mode(const RequestHeader &header, TableParams &wanted) const;
    void set_mode(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void refuse_mode(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void answer_meeting(const RequestHeader &header, const Answer &answer, Responses &out);
    void meet(Responses &out); // once all have asked for a mode, or one cannot any more
    void end_meeting(const Answer &answer, Responses &out);
    void change_mode(const RequestHeader &header);
    void settle(Responses &out); // after a worker's clock has moved
    void release(Responses &out);
    Answer refusal(Verdict verdict, const RequestHeader &header) const;
    // payload: of pull_rows, which the answer needs.
    void finish(const RequestHeader &header, Answered::Entry &entry, const Answer &answer,
                Responses &out, const void *payload = nullptr);
    void respond(const RequestHeader &header, const Answer &answer, Responses &out,
                 const void *payload = nullptr);
    void archive(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void save(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void restore(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void adopt(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void discard(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    // The worker's; by a request before that one.
    bool restores(uint32_t worker, uint64_t before = UINT64_MAX) const {
        return restore_ && restore_->worker == worker && restore_->sequence < before;
    }
    bool restores_by(const RequestHeader &header) const {
        return restores(header.worker) && restore_->sequence == header.sequence;
    }
    void drop_restore();
    Verdict may_go_on(const RequestHeader &header) const; // of what waits in parked_
    void wait_ready(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void set_ready(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    std::unique_ptr<ArchiveJob> make_job(const RequestHeader &header) const; // without an image
    void end(GradualCopy &copy);                                             // of what is here
    // False: told why not.
    bool begin(std::unique_ptr<ArchiveJob> job, Answered::Entry &entry, Responses &out);
    void attach_text(Response &response) const;
    Answer attach_states(Response &response) const; // of a function, for who creates the table
    Answer told(Status status, const char *text);   // keeps the text for attach_text()
    void keep_text(const RequestHeader &header, Answered::Entry &entry); // to tell it again
    Answer failure_told();                                               // of a function
    const FunctionCall::Failure &function_failure() const;
    void note_broken(uint64_t clock);
    Answer attach_values(const RequestHeader &header, const void *payload, Response &response);
    void tell(const RequestHeader &header, Answered::Entry &entry, Status status, const char *text,
              Responses &out);
    Answer attach_rows(const RequestHeader &header, const void *keys, Response &response);

    Identity identity_;
    KeyPartition partition_;
    uint64_t bytes_, copies_ = 0;  // copies: on their way to files, or from them
    std::unique_ptr<Shard> shard_; // or
    std::unique_ptr<SparseShard> rows_;
    Answer refused_;     // why the table could not be made
    bool ready_ = false; // a worker has said that it is initialised
    Archive *archive_;
    PeerMemory *const peers_; // by worker
    std::optional<Restore> restore_;
    std::shared_ptr<const Buffer> told_; // the last text, NUL-terminated
    FunctionCall::Failure broken_;       // BSP: a clock's update was done in part
    Clocks clocks_;
    ClockUpdate update_;      // scratch
    std::vector<char> taken_; // likewise
    std::vector<Member> members_;
    uint32_t present_, joined_ = 0; // joined: of those present
    uint64_t room_ = UINT64_MAX;
    uint32_t changed_ = 0;                      // of mode: the last change that was made
    uint32_t refused_change_ = 0, refuser_ = 0; // the last that was not, and who does not agree
    std::vector<RequestHeader> meeting_;        // set_mode requests, of different workers
    std::vector<RequestHeader> joining_;        // create requests to answer
    std::vector<Waiting> parked_, held_;        // at most request_window per worker in both
};

} // namespace dtrain::ps
