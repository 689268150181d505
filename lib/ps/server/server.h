// A parameter server: the parts of all tables that one process holds, as a state machine.
// SPDX-License-Identifier: Apache-2.0
//
// Each event is one call, which appends what is to be sent to `out` and keeps nothing of the
// payload. No thread-safety of its own. A request that is wrong costs its sender an error and
// nobody else anything.
#pragma once
#include "ps/optimizer/function_registry.h"
#include "ps/server/server_table.h"

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace dtrain::ps {

class Server {
  public:
    struct Config {
        uint32_t index = 0;                          // of this server
        uint32_t servers = 1;                        // of the job
        uint32_t workers = 1;                        // of the job
        uint64_t memory_limit = 0;                   // bytes of all tables here; 0: none
        Archive *archive = nullptr;                  // outlives the server
        const FunctionRegistry *functions = nullptr; // likewise
        uint64_t peer_limit = 0; // bytes that one worker may make it hold besides; 0: none
    };
    explicit Server(const Config &config);

    // A message from that worker (< workers), as the transport knows it. The header may be
    // anything; the payload is aligned to 8 bytes.
    void on_request(uint32_t worker, const RequestHeader &header, const void *payload,
                    uint64_t bytes, Responses &out);
    // What is not kept of the job is the caller's, who gives back its memory without a lock.
    void on_archived(std::unique_ptr<ArchiveJob> &&job, Responses &out);
    // Memory for what a job reads: how much of so many bytes it may have.
    uint64_t reserve(ArchiveJob &job, uint64_t bytes);
    void on_worker_left(uint32_t worker, Responses &out); // the job, in good order
    void on_worker_lost(uint32_t worker, Responses &out);

    bool deserted() const { return present_ == 0; } // every worker has left or was lost
    bool holds(uint32_t table) const {
        auto at = tables_.find(table);
        return at != tables_.end() && at->second != nullptr;
    }
    uint64_t memory_used() const; // bytes charged to the limit
    ServerReport report() const;
    PeerMemory *peers() { return peers_.data(); } // by worker; as long as the server

  private:
    uint64_t memory_left() const; // under the limit
    enum class State : uint8_t { present, left, lost };

    void respond(uint32_t worker, const RequestHeader &header, Reason reason, uint64_t number0,
                 uint64_t number1, Responses &out);
    void create(const RequestHeader &header, const void *payload, uint64_t bytes, Responses &out);
    std::unique_ptr<ServerTable> make(const RequestHeader &header, const std::string &name,
                                      TableParams params, Responses &out);
    // nullptr: there is none of that name, or it does not suit the table; fail() has said why.
    const dtrain_function_t *find_function(TableParams &params) const;
    void leave_table(std::unique_ptr<ServerTable> &table, uint32_t worker, Responses &out);

    Config config_;
    std::vector<State> workers_;
    std::vector<PeerMemory> peers_;
    uint32_t present_;
    // nullptr: was dropped; its number never comes back.
    std::map<uint32_t, std::unique_ptr<ServerTable>> tables_;
};

} // namespace dtrain::ps
