// A process's part in the parameter server: its client, its server, or both, bound to the network.
// SPDX-License-Identifier: Apache-2.0
//
// A worker with the option ps.serve serves beside the dedicated servers. In a job that would have
// no server otherwise, all workers serve. The node of a worker that serves holds a server, too, and
// reaches it by direct calls.
#pragma once
#include "cluster/session/session.h"
#include "engine/operation.h"
#include "ps/checkpoint/archive.h"
#include "ps/client/client.h"
#include "ps/node/checkpointer.h"
#include "ps/node/chore_thread.h"
#include "ps/node/local_path.h"
#include "ps/node/network_wire.h"
#include "ps/node/server_port.h"
#include "ps/server/server.h"
#include "ps/table/access.h"
#include "ps/table/server_list.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace dtrain::ps {

class Node final : public cluster::Group, public Wire {
  public:
    // What this process's server may use; all outlive the node.
    struct Resources {
        FunctionRegistry &functions;
        accel::Domains &accelerators;
    };
    // One node per session.
    // legacy: of this process's node in the last generation of an elastic job.
    static Status open(std::shared_ptr<cluster::Session> session, Resources resources,
                       Legacy legacy, std::shared_ptr<Node> &out);
    ~Node() override;

    cluster::Session &session() { return *session_; }
    engine::Agent &agent() { return agent_; }
    const ServerList &servers() const { return servers_; }
    // The server weights of a table whose creator gives none.
    std::vector<uint32_t> usual_weights() const;
    // DTRAIN_ERR_BUSY: operations of this worker on tables are in flight. What it has asked beyond
    // them, that a table be destroyed, does not matter.
    Status check_at_rest();
    // What the next generation of the job takes over: values without open clocks. At rest only.
    Status legacy(Legacy &out);
    // Where a table lay in the last generation, if this worker had it; else nullptr.
    const Placement *inherited(const std::string &name) const;
    // What this worker has of a table of the last generation: the part of its own server, and those
    // of workers that have left. displaced: not on the server with the same number; unfit: the
    // table wanted now is another one, except for its mode and placement.
    struct Held {
        uint32_t parts = 0, displaced = 0, unfit = 0;
        uint64_t updates = 0; // the most of any part
        double rate = 0;
    };
    Held held(const std::string &name, const TableParams &wanted);
    using HandedParts = std::vector<std::shared_ptr<const HandedPart>>;
    HandedParts take_held(const std::string &name);
    void give_back(const std::string &name, HandedParts parts);
    // Dedicated servers: the place in the next generation, once the workers have agreed on it.
    bool has_moved(cluster::NextJob &next);
    // That generation has not formed: this server waits for what the workers do next.
    void stay();
    // Completed when every worker has left, the job has failed, or it has moved. nullptr without a
    // server.
    engine::Request *deserted() { return server_ != nullptr ? &*deserted_ : nullptr; }

    // Blocking: makes the handle, sends the create requests, and waits for the answers of all
    // servers.
    Status create_table(const std::string &name, const TableParams &params, int64_t timeout_ns,
                        ClientTable *&table_p);
    // A worker that serves waits until all workers have destroyed the table, at most `patience_ns`.
    // failed: its creation has.
    void destroy_table(ClientTable *table, int64_t patience_ns, bool failed = false);
    // Posts the operation as a TableOperation.
    Status post(Transfer &&transfer, engine::Request *request, int64_t timeout_ns, bool blocking,
                bool awaited = false);

    Checkpointer &checkpointer() { return checkpointer_; }
    // ROUND_ROBIN and GREEDY: the home of a new table (Client::choose_home()).
    uint32_t choose_home(const TableParams &params);
    // Counters for this worker's requests for the table to that server; -1: to all servers.
    Counters counters(const ClientTable &table, int32_t server);
    std::string metrics(); // of this process's server, as text

    // ---- under the agent's lock ----
    Client &client() { return *client_; }
    int work();         // does local work, retries what was held back, and serves timers
    int work_locally(); // the same, but leaves requests that may be packed with more
    bool contains(uint32_t) const override { return true; }
    void member_lost(uint32_t member, Status status, const char *text, bool silent) override;
    void member_left(uint32_t member) override;
    void peer_broken(uint32_t, Status, const char *, bool) override {} // requests are sent again
    void failed(Status status, const char *text, int32_t guilty_member, uint64_t from) override;
    void calls_wanted() override {}
    void rank_behind(int32_t, uint64_t) override {}
    void moved(const cluster::NextJob &next) override;

    Status send(uint32_t server, Outgoing &request) override;
    void withdraw(uint32_t server, Outgoing &request) override;
    void settled(uint32_t server, Outgoing &request) override;

  private:
    // Lets the agent poll the node's work as long as the node exists.
    class Service final : public engine::Operation {
      public:
        Service(engine::Request *completed, Node &node) : Operation(completed), node_(node) {
            polled = true;
        }
        void start(engine::Agent &) override {}
        int advance(engine::Agent &) override { return node_.work(); }
        void fail(engine::Agent &, const engine::Outcome &, const char *) override {}
        void timed_out(engine::Agent &) override {}
        void unable(engine::Agent &, Status status, const char *text) override {
            if (node_.client_ != nullptr) node_.client_->abandon_all(status, text);
        }
        void dispose() override {}

      private:
        Node &node_;
    };

    explicit Node(std::shared_ptr<cluster::Session> session);
    bool is_local(uint32_t server) const; // the server of this process
    Status start(const Resources &resources, std::map<std::string, LegacyPart> parts);
    void start_archive();
    void archived(std::unique_ptr<ArchiveJob> job);
    void lose_server(uint32_t server, const char *text);
    void check_deserted();
    // Stops polling if all requests of a worker were answered. A server always polls.
    void rest_when_idle();
    // Tells the servers in the background.
    void drop_table(ClientTable *table, bool failed);

    std::shared_ptr<cluster::Session> session_;
    const ServerList servers_;
    engine::Agent &agent_;
    engine::Request service_done_;
    std::optional<engine::Request> deserted_{std::in_place};
    Service service_;
    std::unique_ptr<ArchiveThread> archive_; // if there is a server and checkpoint.directory
    std::unique_ptr<ChoreThread> chores_;    // if there is a server
    Access access_;                          // of the server
    Tokens tokens_;                          // of the client
    std::unique_ptr<Server> server_;
    std::unique_ptr<ServerPort> port_;
    std::unique_ptr<NetworkWire> network_;
    std::unique_ptr<LocalPath> local_;
    std::unique_ptr<Client> client_;
    Checkpointer checkpointer_;
    bool serves_ = false; // service_ is posted
    bool deserted_told_ = false;
    std::map<std::string, Placement> placements_; // of the last generation's tables
    Handed handed_;                               // parts of workers that have left since
    std::unique_ptr<cluster::NextJob> moved_;     // guarded by the agent's lock
    bool followed_ = false;                       // moved_ was taken
};

} // namespace dtrain::ps
