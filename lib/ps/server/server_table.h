// One table on a server: passes each request to its handler, and events to the objects concerned.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/checkpoint/archive.h"
#include "ps/placement/key_partition.h"
#include "ps/server/checkpoint_session.h"
#include "ps/server/error_texts.h"
#include "ps/server/kept_rooms.h"
#include "ps/server/legacy.h"
#include "ps/server/membership.h"
#include "ps/server/metrics_text.h"
#include "ps/server/mode_change.h"
#include "ps/server/peer_memory.h"
#include "ps/server/request_check.h"
#include "ps/server/request_log.h"
#include "ps/server/request_values.h"
#include "ps/server/response.h"
#include "ps/server/waiting_room.h"
#include "ps/storage/consistency.h"
#include "ps/storage/storage.h"
#include "ps/table/access.h"
#include "ps/table/counters.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dtrain::ps {

class ServerTable {
  public:
    struct Identity {
        uint32_t table = 0, server = 0, servers = 1, workers = 0;
        std::string name;
        TableParams params;
        bool limited = false; // the server has a memory limit
        bool copies = false;  // as Server::Config::copies_answers
    };
    // partition: of the keys of a sparse table; for a dense one only its version is used. part: of
    // a dense table. storage: nullptr if it could not be made. archive: may be nullptr. peers: an
    // array by worker. Both must outlive the table.
    ServerTable(const Identity &identity, const KeyPartition &partition, const Part &part,
                std::unique_ptr<Storage> storage, Archive *archive, PeerMemory *peers);

    // The values and state as they are, without sums of open clocks.
    LegacyPart legacy();
    // Its values are those that this server held before the job was formed anew.
    void set_inherited() { inherited_ = true; }
    // The workers expect such values, and this server does not hold them: until they are restored
    // from a checkpoint, the table has none.
    void set_lost() { lost_ = true; }
    bool has_values() const { return made() && !lost_; }
    // A create request of that worker. All are answered when the last present worker has asked, or
    // as soon as the table turns out to be impossible to make.
    // rights: what the worker may do (access.h); somebody must have the right to create the table.
    void join(const RequestHeader &header, const std::string &name, const TableParams &params,
              uint8_t rights, Responses &out);
    // Answers every create request, past and future, with this error, and frees the values.
    void refuse(const Answer &answer, Responses &out);
    void refuse(Status status, const char *text, Responses &out);
    // Any other request except destroy; check_request() must have accepted it.
    void request(const RequestHeader &header, const void *payload, uint64_t bytes, Responses &out);
    // For rows that the next requests ask for: their buckets, and then, in a second call,
    // themselves.
    void prefetch(const uint64_t *keys, size_t count, bool rows) const;
    void on_archived(std::unique_ptr<ArchiveJob> &&job, Responses &out); // as in Server
    uint64_t reserve(ArchiveJob &job, uint64_t bytes) { return checkpoints_.reserve(job, bytes); }
    // Goes on with what has waited for an accelerator, if that has got so far.
    void look_at_device(Responses &out);
    void leave(uint32_t worker, Responses &out); // it destroyed its handle or left the job
    // It could not open the table. Those who have opened it count on its pushes, so it is lost.
    void give_up(uint32_t worker, Responses &out);
    // Of an inherited table that somebody could not open, once it is unused: for the next attempt.
    std::optional<LegacyPart> take_back();
    void lose(uint32_t worker, Responses &out);
    bool unused() const { return members_.count() == 0; } // all workers have left or were lost
    // Bytes charged to the server's limit: rows when they are made, everything else at creation.
    uint64_t bytes() const { return checkpoints_.bytes() + (made() ? storage_->bytes() : 0); }
    const std::string &name() const { return identity_.name; }
    TableReport report() const;
    // Whether a request of this kind may need more memory.
    bool grows(RequestKind kind) const {
        return kind == RequestKind::set_mode || kind == RequestKind::save ||
               kind == RequestKind::clock || // a save may wait for the clock
               (made() && storage_->grows());
    }
    void set_room(uint64_t bytes) { // the bytes that the server has left
        room_ = bytes;
        if (made()) storage_->set_room(bytes);
    }

  private:
    struct Handlers; // by RequestKind
    struct Worker {
        RequestLog log;
        KeptRooms rooms;
        uint64_t pulled = 0;         // updates at its last pull
        uint8_t rights = Right::all; // what it may do (access.h)
        Counters counters;
    };

    // Members (server_table_members.cpp)
    bool made() const { return storage_ != nullptr; }
    void answer_joined(Responses &out); // if all have joined
    void forget(uint32_t worker);       // it has left or was lost

    // Handlers of requests. Some also get the payload.
    void push(const RequestHeader &header, const void *payload, Answered::Entry &entry,
              Responses &out);
    void pull(const RequestHeader &header, const void *payload, Answered::Entry &entry,
              Responses &out);
    void pull_state(const RequestHeader &header, const void *payload, Answered::Entry &entry,
                    Responses &out) {
        finish(header, entry, {}, out, payload);
    }
    void set(const RequestHeader &header, const void *payload, Answered::Entry &entry,
             Responses &out);
    void set_state(const RequestHeader &header, const void *payload, Answered::Entry &entry,
                   Responses &out);
    void erase_rows(const RequestHeader &header, const void *payload, Answered::Entry &entry,
                    Responses &out);
    void count_rows(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void keep_rows(const RequestHeader &header, const void *payload, Answered::Entry &entry,
                   Responses &out);
    void end_keeping(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void set_rate(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void set_updates(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void clock(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void cancel(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void set_mode(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void set_ready(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void wait_ready(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void save(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void restore(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void adopt(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void discard(const RequestHeader &header, Answered::Entry &entry, Responses &out);

    // The answer to a request for which the worker lacks a right; Reason::none: it has them.
    Answer barred(const RequestHeader &header) const {
        const uint8_t rights = workers_[header.worker].rights;
        const uint8_t missing = rights == Right::all ? 0 : rights_for(header.kind) & ~rights;
        return missing == 0 ? Answer{} : Answer{Reason::no_right, {missing, header.worker}};
    }

    // Values (server_table_values.cpp)
    Answer take(const RequestHeader &header, const void *payload, Answered::Entry &entry);
    // The answer to a push whose value for `item`, an element or a key, is not finite.
    Answer spoilt(const RequestHeader &header, uint64_t item, Answered::Entry &entry);
    Answer keep_room(const RequestHeader &header, const uint64_t *keys);
    Answer outcome(Reason reason); // of a change to the values

    // Accelerators (server_table_device.cpp)
    // What a request of this kind does that may wait for the accelerator.
    std::optional<Storage::Need> need_of(RequestKind kind) const;
    bool is_held_up(Storage::Need need, bool only_asks);
    bool must_wait(RequestKind kind); // then look_at_device() will ask for it
    bool waits_for_device(RequestKind kind) const { return waits_ && need_of(kind); }
    bool may_apply(); // the update of a clock; else look_at_device() will

    // Clocks (server_table_clocks.cpp)
    void hold(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void park(const RequestHeader &header, Answered::Entry &entry) {
        waiting_.park(header, entry, peers_[header.worker]);
    }
    Verdict may_push(const RequestHeader &header) const;
    Verdict may_pull(const RequestHeader &header) const;
    Verdict may_go_on(const RequestHeader &header) const; // for parked requests
    Answer refusal(Verdict verdict, const RequestHeader &header) const;
    // The worker that a waiting request waits for, unless it waits for something else.
    std::optional<uint32_t> awaited(const RequestHeader &header) const;
    void tell_awaited(const RequestHeader &header, Responses &out); // to who has repeated it
    Answer stale(const RequestHeader &header);                      // counts the request as stale
    void apply_clock();
    void apply_clocks();         // all that have ended
    void settle(Responses &out); // call it after a worker's clock may have moved
    void release(Responses &out);

    // Changes of the mode (server_table_mode.cpp)
    Answer check_mode(const RequestHeader &header, TableParams &wanted) const;
    void meet(Responses &out); // acts on what mode_change_ decides
    void end_meeting(const Answer &answer, Responses &out);
    void change_mode(const RequestHeader &header);

    // Files (server_table_files.cpp)
    std::unique_ptr<ArchiveJob> make_job(const RequestHeader &header,
                                         std::unique_ptr<Image> image) const;
    // Starts the job. False: the worker was answered with an error.
    bool begin(std::unique_ptr<ArchiveJob> job, Answered::Entry &entry, Responses &out);

    // Answers (server_table_answers.cpp). payload: for pulls of rows, whose answers need the keys.
    void finish(const RequestHeader &header, Answered::Entry &entry, const Answer &answer,
                Responses &out, const void *payload = nullptr);
    void finish_parked(const RequestHeader &header, const Answer &answer, Responses &out) {
        finish(header, workers_[header.worker].log.entry(header.sequence), answer, out);
    }
    void respond(const RequestHeader &header, const Answer &answer, Responses &out,
                 const void *payload = nullptr);
    Answer attach_values(const RequestHeader &header, const void *payload, Response &response);
    Answer attach_states(Response &response) const; // the function's states, to a create request
    bool copies(const RequestHeader &header) const;
    bool storage_copies(const RequestHeader &header) const;
    static Reason copy_payload(Response &response); // whether its answer needs a copy of values
    bool may_answer(const RequestHeader &header) const {
        return peers_[header.worker].limit() == 0 || fits_limit(header);
    }
    bool fits_limit(const RequestHeader &header) const;
    Answer over_limit(uint32_t worker) const;
    Answer failure_told(); // a function's failure
    void tell(const RequestHeader &header, Answered::Entry &entry, Status status, const char *text,
              Responses &out);
    void keep_text(const RequestHeader &header, Answered::Entry &entry); // for repeated answers

    Identity identity_;
    const RequestCheck check_;
    RequestValues values_;
    std::unique_ptr<Storage> storage_;      // nullptr: the table could not be made, ...
    Answer refused_;                        // ... because of this
    uint32_t creators_ = 0;                 // workers that may create the table and have asked
    bool ready_ = false;                    // a worker has called set_ready
    bool inherited_ = false, lost_ = false; // as set; lost_: and not restored since
    bool opening_failed_ = false;
    std::optional<Storage::Need> waits_; // of a request that waits for the accelerator
    bool clock_waits_ = false;           // the update of a clock does
    std::optional<LegacyPart> kept_;     // when an inherited table was refused
    Archive *const archive_;
    PeerMemory *const peers_; // by worker
    Clocks clocks_;
    Membership members_;
    std::vector<Worker> workers_;
    WaitingRoom waiting_;
    ModeChange mode_change_;
    CheckpointSession checkpoints_;
    ErrorTexts texts_;
    FunctionCall::Failure broken_; // set if a clock's update was only partly applied
    uint64_t room_ = UINT64_MAX;   // bytes that the server has left
    ClockUpdate update_;           // scratch
};

} // namespace dtrain::ps
