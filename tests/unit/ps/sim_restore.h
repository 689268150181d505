// Workers that restore two tables from checkpoints over a SimNetwork, in which
// disks fail, and what may have come of it: everything or nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/client/client_table.h"
#include "sim_network.h"
#include "sim_restore_tables.h"

#include <algorithm>
#include <array>
#include <deque>
#include <string>

struct RestoreScenario {
    uint64_t seed = 0;
    uint32_t servers = 1, restorers = 1;
    Faults faults;
    uint32_t unreadable = 0;     // per cent of the parts
    int32_t dies = -1;           // this worker crashes,
    int32_t server_dies = -1;    // this server crashes,
    int64_t when = 0;            // at this time
    int64_t timeout = INT64_MAX; // of each phase
    bool eager = false;          // wrong: each table is taken over as soon as it has been read
    Spoil spoil = nullptr;       // likewise
};

class SimRestore {
    using RequestKind = dtrain::ps::RequestKind;

  public:
    explicit SimRestore(const RestoreScenario &scenario)
        : scenario_(scenario), observer_(scenario.restorers),
          network_(scenario.seed, observer_ + 1, scenario.servers, scenario.faults,
                   client_config(scenario)),
          tables_(scenario.servers, observer_), workers_(observer_ + 1), base_(scenario.servers) {
        network_.read_by([this](auto &server, auto &job) { read(server, job); });
        if (scenario.spoil) network_.spoil(scenario.spoil);
        for (uint32_t w = 0; w <= observer_; ++w) create(w);
    }

    // "" or what went wrong.
    std::string run() {
        while (network_.step())
            if (network_.now() > 1'000'000'000) return "still busy at the end of time";
        for (uint32_t w = 0; w < observer_; ++w)
            if (workers_[w].phase != Phase::over && !workers_[w].gone)
                return "worker " + std::to_string(w) + " hangs";
        return error_.empty() ? check() : error_;
    }
    uint32_t restored() const { return restored_; } // by so many workers

  private:
    enum class Phase : uint8_t { creating, reading, adopting, discarding, over };
    struct Worker {
        std::array<dtrain::ps::ClientTable *, 2> tables = {};
        Phase phase = Phase::creating;
        uint32_t in_flight = 0, next = 0; // next: table, where they are taken over one by one
        dtrain_status_t status = DTRAIN_OK, outcome = DTRAIN_OK;
        uint32_t attempts = 0;
        bool gone = false;
    };

    static dtrain::ps::Client::Config client_config(const RestoreScenario &scenario) {
        dtrain::ps::Client::Config config;
        config.retry_ns = 4 * scenario.faults.longest_delay;
        return config;
    }
    struct Commit { // which has begun
        uint64_t step;
        bool done = false;
    };
    uint64_t step_of(uint32_t w) const { return 100 + 10 * w + workers_[w].attempts; }

    // ---- what workers do, as Checkpointer::restore() ----

    void create(uint32_t w) {
        for (uint32_t t = 0; t < RestoreTables::count; ++t)
            (void)network_.client(w)->open(t == 0 ? "dense" : "sparse", RestoreTables::params(t),
                                           workers_[w].tables[t]);
        start(w, RequestKind::create, 0, 2);
    }

    void start(uint32_t w, RequestKind kind, uint32_t first, uint32_t end) {
        Worker &worker = workers_[w];
        worker.status = DTRAIN_OK;
        worker.in_flight = end - first;
        for (uint32_t t = first; t < end && !worker.gone; ++t) {
            Op &op = ops_.emplace_back(Op{{}, this, w});
            op.transfer.kind = kind;
            op.transfer.table = worker.tables[t];
            op.transfer.argument = kind == RequestKind::restore ? step_of(w) : 0;
            op.transfer.owner = &op;
            op.transfer.done = [](dtrain::ps::Transfer *transfer) {
                auto *self = static_cast<Op *>(transfer->owner);
                self->done = true;
                self->job->complete(*self);
            };
            network_.client(w)->start(op.transfer, network_.now());
            if (scenario_.timeout == INT64_MAX || kind == RequestKind::create) continue;
            network_.at(network_.now() + scenario_.timeout, [this, &op] {
                if (!op.done && network_.client(op.worker) != nullptr)
                    network_.client(op.worker)->abandon(op.transfer, DTRAIN_ERR_TIMEOUT, "slow");
            });
        }
    }

    struct Op {
        dtrain::ps::Transfer transfer;
        SimRestore *job;
        uint32_t worker;
        bool done = false;
    };

    void complete(const Op &op) {
        Worker &worker = workers_[op.worker];
        if (worker.status == DTRAIN_OK) worker.status = op.transfer.status;
        if (--worker.in_flight > 0) return;
        // The client is inside of a call.
        network_.at(network_.now(), [this, w = op.worker] {
            if (!workers_[w].gone) go_on(w);
        });
    }

    void go_on(uint32_t w) {
        Worker &worker = workers_[w];
        const uint32_t most = scenario_.eager ? worker.next + 1 : 2;
        if (worker.phase == Phase::creating) return created(w);
        if (worker.phase != Phase::discarding && worker.status != DTRAIN_OK) {
            worker.outcome = worker.status;
            worker.phase = Phase::discarding;
            return start(w, RequestKind::discard, 0, 2);
        }
        if (worker.phase == Phase::reading) {
            worker.phase = Phase::adopting;
            if (most == 2) commits_.push_back({step_of(w)});
            return start(w, RequestKind::adopt, worker.next, most);
        }
        if (worker.phase == Phase::adopting && most < 2) {
            worker.next = most;
            worker.phase = Phase::reading;
            return start(w, RequestKind::restore, most, 2);
        }
        if (worker.outcome != DTRAIN_OK && worker.attempts < 3) return attempt(w);
        worker.phase = Phase::over;
        if (worker.outcome == DTRAIN_OK) restored(w);
    }

    void attempt(uint32_t w) {
        Worker &worker = workers_[w];
        ++worker.attempts;
        worker.outcome = DTRAIN_OK;
        worker.next = 0;
        worker.phase = Phase::reading;
        start(w, RequestKind::restore, 0, scenario_.eager ? 1 : 2);
    }

    void restored(uint32_t w) {
        ++restored_;
        auto its = [&](const Commit &commit) { return commit.step == step_of(w); };
        auto commit = std::find_if(commits_.begin(), commits_.end(), its);
        commit->done = true;
        const bool newest = commit == commits_.end() - 1;
        if (newest && error_.empty()) error_ = check_all({step_of(w)}, false);
    }

    // Once all have the tables, some of them begin.
    void created(uint32_t w) {
        workers_[w].phase = Phase::over;
        if (++created_ <= observer_) return;
        for (uint32_t s = 0; s < scenario_.servers; ++s)
            base_[s] = network_.server(s)->memory_used();
        for (uint32_t r = 0; r < observer_; ++r) {
            workers_[r].phase = Phase::reading;
            network_.at(network_.now() + int64_t(network_.pick(100)), [this, r] {
                if (!workers_[r].gone) attempt(r);
            });
        }
        const int64_t when = network_.now() + scenario_.when;
        if (scenario_.dies >= 0)
            network_.at(when, [this] {
                workers_[uint32_t(scenario_.dies)].gone = true;
                network_.kill_worker(uint32_t(scenario_.dies));
            });
        if (scenario_.server_dies >= 0)
            network_.at(when, [this] { network_.kill_server(uint32_t(scenario_.server_dies)); });
    }

    // ---- what disks do ----

    void read(dtrain::ps::Server &server, dtrain::ps::ArchiveJob &job) {
        tables_.read(job, [&](uint64_t bytes) { return server.reserve(job, bytes); });
        if (network_.pick(100) < scenario_.unreadable) job.status = DTRAIN_ERR_CORRUPT;
        if (job.status != DTRAIN_OK) job.text = "cannot be read";
    }

    // ---- what has come of it ----

    std::string check() {
        if (commits_.empty()) return check_all({0}, true);
        const Commit &newest = commits_.back(); // it had everything read: no other was under way
        if (newest.done) return check_all({newest.step}, true);
        std::vector<uint64_t> may_be = {0};
        for (const Commit &commit : commits_) may_be.push_back(commit.step);
        return check_all(may_be, true);
    }

    // Each living server has, of each table, one of the values, and nothing else.
    std::string check_all(const std::vector<uint64_t> &may_be, bool at_end) {
        for (uint32_t s = 0; s < scenario_.servers; ++s) {
            if (network_.server(s) == nullptr) continue;
            bool has_rows = false;
            for (uint32_t t = 0; t < 2; ++t) {
                const std::vector<uint64_t> values = tables_.pull(*network_.server(s), s, t);
                for (uint64_t value : values)
                    if (value != values[0])
                        return "server " + std::to_string(s) + " has a part of table " +
                               std::to_string(t);
                if (values.empty()) continue;
                if (std::find(may_be.begin(), may_be.end(), values[0]) == may_be.end())
                    return "server " + std::to_string(s) + " has " + std::to_string(values[0]) +
                           " in table " + std::to_string(t) + ", not " + std::to_string(may_be[0]);
                has_rows = t == 1 && values[0] > 0;
            }
            if (at_end)
                if (std::string wrong = check_memory(s, has_rows); !wrong.empty()) return wrong;
        }
        return "";
    }

    // Nothing is kept of what was read.
    std::string check_memory(uint32_t s, bool has_rows) {
        const uint64_t due = base_[s] + (has_rows ? tables_.rows_bytes(s) : 0),
                       used = network_.server(s)->memory_used();
        if (used == due) return "";
        return "server " + std::to_string(s) + " has " + std::to_string(used) + " bytes, not " +
               std::to_string(due);
    }

    RestoreScenario scenario_;
    const uint32_t observer_; // the last worker
    SimNetwork network_;
    RestoreTables tables_;
    std::vector<Worker> workers_;
    std::vector<uint64_t> base_; // by server: bytes of the tables as they were made
    uint32_t created_ = 0, restored_ = 0;
    std::vector<Commit> commits_; // in the order in which they began
    std::string error_;
    std::deque<Op> ops_;
};
