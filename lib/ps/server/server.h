// A parameter server: the parts of all tables that one process holds, as a state machine.
// SPDX-License-Identifier: Apache-2.0
//
// Each event is one call, which appends the answers to `out` and keeps no pointer to the payload.
// Not thread-safe. An invalid request gets an error and affects no other worker.
#pragma once
#include "accel/domains.h"
#include "base/log.h"
#include "ps/optimizer/function_registry.h"
#include "ps/server/server_table.h"
#include "ps/server/table_opening.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dtrain::ps {

class Server {
  public:
    struct Config {
        uint32_t index = 0;                          // of this server
        uint32_t servers = 1;                        // of the job
        uint32_t workers = 1;                        // of the job
        uint64_t memory_limit = 0;                   // bytes of all tables here; 0: no limit
        Archive *archive = nullptr;                  // outlives the server
        const FunctionRegistry *functions = nullptr; // outlives the server
        uint64_t peer_limit = 0;        // bytes beside tables held for one worker; 0: no limit
        const Access *access = nullptr; // outlives the server; nullptr: all tables are everybody's
        uint64_t job = 0;               // of which the proofs of tokens are
        // Answers have values of their own, also where the table's could be sent: those may change
        // before all of the answer has left. Checksums would take that for damage, and transports
        // without DTRAIN_TP_CAP_WORDS would send half of a number before and half after it.
        bool copies_answers = false;
        accel::Domains *accelerators = nullptr; // of tables with memory there; outlive the server
        int32_t device = 0;                     // the number of the one for them
        Chores *chores = nullptr;               // opens them; outlives the server
        Log *log = nullptr;                     // outlives the server
    };
    explicit Server(const Config &config);
    ~Server();

    // Handles a message from that worker (< workers), which the transport has identified. The
    // header is unchecked; the payload is aligned to 8 bytes.
    // Of several requests that come together, before on_request() for the first: in a first round
    // of all (rows = false) and a second one, memory is fetched that they will look at.
    void prefetch(const RequestHeader &header, const void *payload, uint64_t bytes,
                  bool rows) const;
    static bool prefetches(RequestKind kind) {
        return kind == RequestKind::pull_rows || kind == RequestKind::push_rows;
    }
    void on_request(uint32_t worker, const RequestHeader &header, const void *payload,
                    uint64_t bytes, Responses &out);
    // Takes the job if it keeps it; otherwise the caller frees its memory, without a lock.
    void on_archived(std::unique_ptr<ArchiveJob> &&job, Responses &out);
    // Reserves memory for the data that a job reads; returns how many of the bytes it may use.
    uint64_t reserve(ArchiveJob &job, uint64_t bytes);
    // Goes on with what has waited for an accelerator. Costs little if there is none.
    void look_at_device(Responses &out) {
        if (stage_ != nullptr || !openings_.empty()) look_at_tables(out);
    }
    void on_worker_left(uint32_t worker, Responses &out); // it has left the job regularly
    void on_worker_lost(uint32_t worker, Responses &out);

    // Its parts of all tables, by name.
    std::map<std::string, LegacyPart> legacy() const;
    // Tables that are created with these names and parameters begin with these values.
    void inherit(std::map<std::string, LegacyPart> parts) { inherited_ = std::move(parts); }

    // A part that no table has begun with yet; nullptr: there is none with values.
    const LegacyPart *inherited(const std::string &name) const;
    std::optional<LegacyPart> take_inherited(const std::string &name);

    bool deserted() const { return present_ == 0; } // every worker has left or was lost
    bool holds(uint32_t table) const {
        auto at = tables_.find(table);
        return at != tables_.end() && at->second != nullptr;
    }
    uint64_t memory_used() const; // bytes charged to the limit
    ServerReport report() const;
    PeerMemory *peers() { return peers_.data(); } // by worker; valid as long as the server

  private:
    uint64_t memory_left() const; // under the limit
    enum class State : uint8_t { present, left, lost };

    void respond(uint32_t worker, const RequestHeader &header, Reason reason, uint64_t number0,
                 uint64_t number1, Responses &out);
    void create(const RequestHeader &header, const void *payload, uint64_t bytes, Responses &out);
    // device: the storage of a table on an accelerator, or why there is none.
    std::unique_ptr<ServerTable> make(const RequestHeader &header, const std::string &name,
                                      TableParams params, uint8_t rights, Responses &out,
                                      DeviceMade *device = nullptr);
    Part part_of(const TableParams &params) const;
    // Tables on accelerators (server_device.cpp). Whether another thread makes this one; the worker
    // is asked again then.
    bool opens(const RequestHeader &header, const std::string &name, const TableParams &params);
    void open_on_device(uint32_t table);
    void end_opening(uint32_t table, Responses &out);
    void look_at_tables(Responses &out);
    void retire(std::shared_ptr<DeviceStage> stage);
    // nullptr: there is no function of that name, or the table cannot use it; fail() has set why.
    const dtrain_function_t *find_function(TableParams &params) const;
    // Whether the storage of a new table has taken its values over from the last generation.
    bool take_over(const std::string &name, const TableParams &params, Storage &storage);
    void destroy(std::unique_ptr<ServerTable> &table, const RequestHeader &header, Responses &out);
    void leave_table(std::unique_ptr<ServerTable> &table, uint32_t worker, Responses &out);
    void release_unused(std::unique_ptr<ServerTable> &table);

    Config config_;
    std::shared_ptr<DeviceStage> stage_;
    std::vector<State> workers_;
    std::vector<PeerMemory> peers_;
    uint32_t present_;
    // nullptr: the table was dropped; its number is never reused.
    std::map<uint32_t, std::unique_ptr<ServerTable>> tables_;
    std::map<uint32_t, TableOpening> openings_; // tables that are not in tables_ yet
    std::map<std::string, LegacyPart> inherited_;
};

} // namespace dtrain::ps
