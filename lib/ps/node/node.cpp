// Starts and stops a process's client and server, drives their work, and creates tables.
// SPDX-License-Identifier: Apache-2.0
#include "ps/node/node.h"

#include "base/uncancelled.h"
#include "ps/client/client_table.h"
#include "ps/client/push_check.h"
#include "ps/node/table_operation.h"
#include "ps/placement/placement_balance.h"

#include <algorithm>

namespace dtrain::ps {
namespace {

constexpr uint64_t group_uid = 0x7073;         // communicators have odd or larger ones
constexpr int64_t least_peer_memory = 1 << 20; // bytes for a few answers and packs
// The first time, what others wait for may already be on its way.
constexpr int64_t awaited_for = 500 * ms;
constexpr int64_t closing_patience = 200 * ms; // then connections are dropped

// Whether a number may be sent in two parts, with an update of the table between them.
bool may_tear_numbers(const engine::Agent &agent) {
    return !std::ranges::all_of(
        agent.devices(), [](const auto &device) { return device->has(DTRAIN_TP_CAP_WORDS); });
}

} // namespace

Node::Node(std::shared_ptr<cluster::Session> session)
    : session_(std::move(session)), servers_(servers_of(*session_)), agent_(session_->agent()),
      service_(&service_done_, *this), checkpointer_(*this) {}

Status Node::open(std::shared_ptr<cluster::Session> session, Resources resources, Legacy legacy,
                  std::shared_ptr<Node> &out) {
    const std::string paths(session->options().text("ps.functions"));
    Access access;
    Tokens tokens;
    if (servers_of(*session).number(session->self()) != ServerList::none) { // it will serve
        if (Status s = resources.functions.load_all(paths); s != DTRAIN_OK) return s;
        const int64_t limit = session->options().number("ps.peer_memory");
        if (limit > 0 && limit < least_peer_memory)
            return fail(DTRAIN_ERR_CONFIG,
                        "option ps.peer_memory: %lld bytes; at least 1M, or 0 for no limit",
                        static_cast<long long>(limit));
        const std::string path(session->options().text("ps.access"));
        if (Status s = Access::read(path, access); s != DTRAIN_OK) return s;
    }
    const std::string path(session->options().text("ps.token.file"));
    if (Status s = Tokens::read(path, tokens); s != DTRAIN_OK) return s;
    std::shared_ptr<Node> node(new Node(std::move(session)));
    node->access_ = std::move(access);
    node->tokens_ = std::move(tokens);
    node->placements_ = std::move(legacy.placements);
    node->handed_ = std::move(legacy.handed);
    if (Status s = node->start(resources, std::move(legacy.parts)); s != DTRAIN_OK) return s;
    out = std::move(node);
    return DTRAIN_OK;
}

Status Node::start(const Resources &resources, std::map<std::string, LegacyPart> parts) {
    const cluster::Identity &me = session_->identity();
    const uint32_t workers = session_->workers();
    const bool is_worker = me.role == cluster::Role::worker;
    if (const uint32_t index = servers_.number(session_->self()); index != ServerList::none) {
        Server::Config config;
        config.index = index;
        config.servers = servers_.size();
        config.workers = workers;
        config.memory_limit = uint64_t(session_->options().number("ps.memory"));
        config.functions = &resources.functions;
        config.accelerators = &resources.accelerators;
        config.device = int32_t(session_->options().number("ps.device"));
        config.log = &agent_.log();
        config.peer_limit = uint64_t(session_->options().number("ps.peer_memory"));
        config.job = session_->job().id();
        config.access = &access_;
        config.copies_answers =
            session_->options().number("verify") != 0 || may_tear_numbers(agent_);
        chores_ = std::make_unique<ChoreThread>([this](const std::function<void()> &done) {
            agent_.locked([&] {
                if (server_ == nullptr) return;
                done();
                work();
            });
        });
        config.chores = chores_.get();
        start_archive();
        config.archive = archive_.get();
        server_ = std::make_unique<Server>(config);
        server_->inherit(std::move(parts));
        port_ = std::make_unique<ServerPort>(agent_, session_->mesh(), *server_, session_->self(),
                                             workers);
    }
    if (is_worker) {
        network_ =
            std::make_unique<NetworkWire>(agent_, session_->mesh(), session_->self(), servers_);
        if (server_ != nullptr) local_ = std::make_unique<LocalPath>(uint32_t(me.index));
        Client::Config config;
        config.worker = uint32_t(me.index);
        config.servers = servers_.size();
        config.retry_ns = session_->options().number("ps.retry");
        client_ = std::make_unique<Client>(config, *this);
    }
    Status s = DTRAIN_OK;
    agent_.locked([&] {
        if (port_ != nullptr) s = port_->open();
        if (s == DTRAIN_OK && network_ != nullptr) s = network_->open(*client_);
    });
    session_->add_group(group_uid, this, session_->breaks()); // what is lost is sent again
    agent_.post(&service_, false);
    serves_ = true;
    return s;
}

void Node::start_archive() {
    const std::string folder(session_->options().text("checkpoint.directory"));
    if (folder.empty()) return;
    archive_ = std::make_unique<ArchiveThread>(
        folder, data::system_disk(),
        ArchiveThread::Owner{[this](ArchiveJob &job, uint64_t bytes) {
                                 uint64_t granted = 0;
                                 agent_.locked([&] { granted = server_->reserve(job, bytes); });
                                 return granted;
                             },
                             [this](std::unique_ptr<ArchiveJob> job) { archived(std::move(job)); },
                             [this](const std::function<void()> &work) { agent_.locked(work); }});
}

void Node::archived(std::unique_ptr<ArchiveJob> job) {
    if (job->status != DTRAIN_OK)
        agent_.log().write(DTRAIN_LOG_WARN, "checkpoint %llu, table \"%s\": %s",
                           static_cast<unsigned long long>(job->request.argument),
                           job->name.c_str(), job->text.c_str());
    else if (job->request.kind == RequestKind::save)
        agent_.log().write(DTRAIN_LOG_DEBUG,
                           "checkpoint %llu, table \"%s\": copied %llu bytes while serving "
                           "requests, which waited at most %.3f ms at a time",
                           static_cast<unsigned long long>(job->request.argument),
                           job->name.c_str(), static_cast<unsigned long long>(job->charged),
                           1e-6 * double(job->longest_turn));
    agent_.locked([&] {
        server_->on_archived(std::move(job), port_->responses());
        work();
    });
}

Node::~Node() {
    if (archive_ != nullptr) archive_->stop();
    session_->remove_group(group_uid, this);
    agent_.locked([&] {
        if (port_ != nullptr) port_->close();
    });
    // Messages in a transport are withdrawn; if that takes too long, their connections are dropped.
    const auto idle = [&] {
        bool none = true;
        agent_.locked([&] {
            none = (port_ == nullptr || port_->idle()) && (client_ == nullptr || client_->idle());
            if (none && network_ != nullptr) none = network_->close();
        });
        return none;
    };
    agent_.wait_until(idle, agent_.clock().now_ns() + closing_patience);
    if (!idle()) {
        agent_.locked([&] {
            for (uint32_t m = 0; m < session_->workers() + session_->servers(); m++) {
                session_->mesh().drop(m);
                if (client_ != nullptr && servers_.number(m) != ServerList::none)
                    lose_server(servers_.number(m), "this process is leaving the job");
            }
        });
        agent_.wait_until(idle, INT64_MAX);
    }
    agent_.locked([&] {
        if (serves_) agent_.finish(&service_, {}, "");
        client_.reset(); // under the lock, since they release registered memory
        network_.reset();
        port_.reset();
        server_.reset();
    });
    if (chores_ != nullptr) chores_->finish();
}

// ---- generations ----

Status Node::check_at_rest() {
    bool operations = false;
    agent_.locked([&] { operations = client_ != nullptr && client_->has_transfers(); });
    return operations ? fail(DTRAIN_ERR_BUSY,
                             "reform: operations on tables are in flight; wait for them first")
                      : DTRAIN_OK;
}

Status Node::legacy(Legacy &out) {
    if (Status s = check_at_rest(); s != DTRAIN_OK) return s;
    agent_.locked([&] {
        out.placements = placements_;
        out.handed = handed_;
        if (client_ != nullptr)
            for (auto &[name, placement] : client_->placements()) out.placements[name] = placement;
        if (server_ != nullptr) out.parts = server_->legacy();
    });
    return DTRAIN_OK;
}

const Placement *Node::inherited(const std::string &name) const {
    auto found = placements_.find(name);
    return found != placements_.end() ? &found->second : nullptr;
}

bool Node::has_moved(cluster::NextJob &next) {
    bool moved = false;
    agent_.locked([&] {
        moved = followed_ = moved_ != nullptr;
        if (moved) next = *moved_;
    });
    return moved;
}

// ---- the client's wire ----

bool Node::is_local(uint32_t server) const {
    return local_ != nullptr && servers_.member(server) == session_->self();
}

Status Node::send(uint32_t server, Outgoing &request) {
    if (is_local(server)) {
        local_->send(request);
        return DTRAIN_OK;
    }
    return network_->send(server, request);
}

void Node::withdraw(uint32_t server, Outgoing &request) {
    if (is_local(server))
        local_->withdraw(request);
    else
        network_->withdraw(server, request);
}

void Node::settled(uint32_t server, Outgoing &request) {
    if (is_local(server))
        local_->settled(request);
    else
        network_->settled(server, request);
}

int Node::work() {
    int done = network_ != nullptr ? network_->run() : 0;
    if (client_ != nullptr && agent_.now() >= client_->next_timer())
        client_->on_timer(agent_.now());
    return done + work_locally();
}

int Node::work_locally() {
    int done = 0;
    if (server_ != nullptr) server_->look_at_device(port_->responses());
    if (local_ != nullptr && (!local_->idle() || !port_->responses().empty()))
        done += local_->run(*client_, *server_, port_->responses(), agent_.now());
    if (port_ != nullptr) done += port_->send() + port_->retry();
    rest_when_idle();
    return done;
}

void Node::rest_when_idle() {
    if (server_ == nullptr) agent_.rest(&service_, client_->idle() && network_->idle());
}

// ---- tables ----

Status Node::post(Transfer &&transfer, engine::Request *request, int64_t timeout_ns, bool blocking,
                  bool awaited) {
    const Uncancelled uncancelled;
    if (Status s = check_push(transfer, client_->worker()); s != DTRAIN_OK) return s;
    const int32_t priority = transfer.priority;
    auto *operation = new (*request) TableOperation(request, *this, std::move(transfer));
    operation->time_limit_ns = session_->time_limit(timeout_ns);
    operation->priority = priority;
    agent_.post(operation, blocking || awaited);
    if (blocking) agent_.wait(*request, INT64_MAX);
    return DTRAIN_OK;
}

Status Node::create_table(const std::string &name, const TableParams &params, int64_t timeout_ns,
                          ClientTable *&table_p) {
    ClientTable *table = nullptr;
    Status s = DTRAIN_OK;
    const std::string proofs = tokens_.proofs({session_->job().id(), client_->worker(), name});
    agent_.locked([&] { s = client_->open(name, params, table, proofs); });
    if (s != DTRAIN_OK) return s;
    Transfer transfer;
    transfer.kind = RequestKind::create;
    transfer.table = table;
    engine::Request request;
    post(std::move(transfer), &request, timeout_ns, true);
    if (request.outcome().status != DTRAIN_OK) {
        drop_table(table, true);
        set_error_text(request.error());
        return request.outcome().status;
    }
    table_p = table;
    return DTRAIN_OK;
}

void Node::drop_table(ClientTable *table, bool failed) {
    agent_.locked([&] {
        client_->destroy(table, agent_.now(), failed);
        rest_when_idle();
    });
    agent_.call_helper(); // no thread waits for the answers
}

void Node::destroy_table(ClientTable *table, int64_t patience_ns, bool failed) {
    uint32_t id = table->id;
    drop_table(table, failed);
    const int64_t begun_ns = agent_.clock().now_ns();
    int64_t first_ns = 0;
    const auto is_awaited = [&] {
        const int64_t last_ns = session_->awaited_at();
        if (first_ns == 0 && last_ns > begun_ns) first_ns = last_ns;
        return first_ns != 0 && last_ns >= first_ns + awaited_for;
    };
    const auto served = [&] {
        bool needed = false;
        agent_.locked(
            [&] { needed = server_ != nullptr && server_->holds(id) && !session_->others_wait(); });
        return !needed || is_awaited();
    };
    // Other workers may still use this server's part of the table, but not while they wait for this
    // one to shrink a communicator, to reform, or to begin a call: perhaps it never does, as it
    // ends for an error.
    agent_.wait_until(served, session_->deadline(patience_ns));
}

std::vector<uint32_t> Node::usual_weights() const {
    const uint32_t dedicated = session_->servers();
    return server_weights(session_->workers(), dedicated, servers_.size() - dedicated);
}

uint32_t Node::choose_home(const TableParams &params) {
    uint32_t chosen = 0;
    agent_.locked([&] { chosen = client_->choose_home(params, session_->workers()); });
    return chosen;
}

Counters Node::counters(const ClientTable &table, int32_t server) {
    Counters sum;
    agent_.locked([&] {
        for (size_t s = 0; s < table.channels.size(); ++s)
            if (server < 0 || size_t(server) == s) sum += table.channels[s]->counters();
    });
    return sum;
}

std::string Node::metrics() {
    ServerReport report;
    agent_.locked([&] { report = server_->report(); });
    return metrics_text(servers_.number(session_->self()), report);
}

} // namespace dtrain::ps
