// Workers that push, pull and clock one table over a SimNetwork, and the history of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "history.h"
#include "ps/client_table.h"
#include "ps/row_batch.h"
#include "sim_network.h"

#include <algorithm>
#include <deque>
#include <optional>

struct Scenario {
    uint64_t seed = 0;
    Definition mode;
    uint32_t workers = 2, servers = 1, clocks = 4;
    uint64_t length = 32;
    uint64_t chunk = 64; // bytes
    bool sparse = false; // elements are rows of keys
    AddedBy added_by = AddedBy::rule;
    uint32_t reproducible = 0;
    Faults faults;
    bool priorities = false;        // of their operations
    bool in_flight_together = true; // several operations of a worker at a time
    int32_t dies = -1;              // this worker crashes,
    int32_t server_dies = -1;       // this server crashes,
    int64_t when = 0;               // at this time
    int32_t leaves_early = -1;      // this worker makes only half of the clocks
    int64_t timeout = INT64_MAX;    // after which operations are abandoned
};

class SimJob {
  public:
    explicit SimJob(const Scenario &scenario)
        : scenario_(scenario), network_(scenario.seed, scenario.workers, scenario.servers,
                                        scenario.faults, client_config(scenario)),
          partition_(scenario.length, scenario.servers) {
        for (uint32_t w = 0; w < scenario.workers; ++w) workers_.push_back({});
        if (scenario.dies >= 0)
            network_.at(scenario.when, [this] {
                workers_[uint32_t(scenario_.dies)].gone = true;
                network_.kill_worker(uint32_t(scenario_.dies));
            });
        if (scenario.server_dies >= 0)
            network_.at(scenario.when,
                        [this] { network_.kill_server(uint32_t(scenario_.server_dies)); });
    }

    // "" or what went wrong.
    std::string run() {
        for (uint32_t w = 0; w < scenario_.workers; ++w) create(w);
        int64_t limit = 1'000'000'000;
        while (network_.step()) {
            for (uint32_t w = 0; w < scenario_.workers; ++w) advance(w);
            if (network_.now() > limit) return "still busy at the end of time";
        }
        for (uint32_t w = 0; w < scenario_.workers; ++w)
            if (!workers_[w].gone && !workers_[w].finished)
                return "worker " + std::to_string(w) + " hangs";
        return check(scenario_.mode);
    }
    std::string check(Definition mode) const {
        std::vector<const Record *> history;
        for (const auto &op : ops_)
            if (op->recorded) history.push_back(&op->record);
        // Steps can be counted where no push was given up and pulls are one request per server.
        bool countable = scenario_.timeout == INT64_MAX &&
                         scenario_.chunk >= 16 * scenario_.length &&
                         (!scenario_.sparse || scenario_.servers == 1);
        Steps steps = {.until = first_left_};
        for (uint32_t s = 0; countable && s < scenario_.servers; ++s) {
            const dtrain::ps::Range part = partition_.part(s);
            steps.parts.push_back({part.first, part.count});
        }
        return HistoryChecker(history, scenario_.workers, mode, steps).check();
    }
    // The first operation that failed, "" if none did.
    std::string first_failure() const {
        for (const auto &op : ops_)
            if (op->record.status != DTRAIN_OK) return op->transfer.text;
        return "";
    }

  private:
    struct Op {
        dtrain::ps::Transfer transfer;
        Record record;
        SimJob *job = nullptr;
        bool done = false, recorded = false;
        std::vector<uint64_t> keys, values; // of a sparse table
    };
    struct Worker {
        dtrain::ps::ClientTable *table = nullptr;
        uint32_t in_flight = 0, steps_left = 0;
        uint64_t clock = 0;        // its own count
        uint64_t whole_pushes = 0; // clocks that begin with one
        bool created = false, gone = false, finished = false, failed = false, last_pull = false;
    };

    static Did did(dtrain::ps::RequestKind kind) {
        using dtrain::ps::RequestKind;
        return kind == RequestKind::push        ? Did::push
               : kind == RequestKind::pull      ? Did::pull
               : kind == RequestKind::push_pull ? Did::push_pull
               : kind == RequestKind::clock     ? Did::clock
                                                : Did::other;
    }

    static dtrain::ps::Client::Config client_config(const Scenario &scenario) {
        dtrain::ps::Client::Config config;
        config.chunk = scenario.chunk;
        config.bound = 2 * scenario.chunk;
        config.retry_ns = 4 * scenario.faults.longest_delay;
        return config;
    }

    void create(uint32_t w) {
        dtrain::ps::TableParams params;
        params.length = scenario_.sparse ? 0 : scenario_.length;
        params.dim = scenario_.sparse ? 1 : 0;
        params.dtype = DTRAIN_U64;
        params.consistency = scenario_.mode.consistency;
        params.staleness = scenario_.mode.staleness;
        set_rule(scenario_.added_by, params);
        params.quorum = scenario_.mode.quorum;
        params.reproducible = scenario_.reproducible;
        (void)network_.client(w)->open("table", params, workers_[w].table);
        start(w, dtrain::ps::RequestKind::create);
    }

    void advance(uint32_t w) {
        Worker &worker = workers_[w];
        if (worker.gone || worker.finished) return;
        uint32_t most = scenario_.in_flight_together ? 1 + uint32_t(network_.pick(6)) : 1;
        bool early = scenario_.leaves_early == int32_t(w);
        uint32_t clocks = early ? scenario_.clocks / 2 : scenario_.clocks;
        while (worker.in_flight < most && !worker.gone && !worker.finished) {
            if (!worker.created || worker.failed || worker.clock >= clocks) {
                if (worker.in_flight > 0) return;
                if (worker.last_pull || worker.failed || early) return finish(w);
                worker.last_pull = true;
                start(w, dtrain::ps::RequestKind::pull, true);
            } else {
                one_step(w);
            }
        }
    }

    void finish(uint32_t w) {
        workers_[w].finished = true;
        first_left_ = std::min(first_left_, network_.now());
        network_.client(w)->destroy(workers_[w].table, network_.now());
        if (scenario_.leaves_early == int32_t(w)) network_.leave(w);
    }

    void one_step(uint32_t w) {
        using dtrain::ps::RequestKind;
        Worker &worker = workers_[w];
        bool full = worker.steps_left == 0; // of this clock
        uint64_t choice = full ? 3 : network_.pick(3);
        if (worker.steps_left > 0) --worker.steps_left;
        if (scenario_.mode.quorum > 0 && worker.whole_pushes == worker.clock) {
            ++worker.whole_pushes; // so that every contribution shows everywhere
            return start(w, RequestKind::push, true);
        }
        if (choice == 0)
            start(w, RequestKind::push);
        else if (choice == 1)
            start(w, RequestKind::pull);
        else if (choice == 2)
            start(w, RequestKind::push_pull);
        else
            start(w, RequestKind::clock);
        if (full || (scenario_.mode.collects() && choice == 2))
            worker.steps_left = uint32_t(network_.pick(5));
    }

    // The record's range as keys, in another order and some of them twice (a push: of nothing).
    void make_rows(Op &op) {
        using dtrain::ps::RequestKind, dtrain::ps::RowBatch;
        Record &record = op.record;
        std::vector<std::pair<uint64_t, uint64_t>> rows; // key, value
        for (uint64_t i = 0; i < record.range.count; ++i) {
            rows.emplace_back((record.range.first + i) * 0x9e3779b97f4a7c15, record.sent[i]);
            if (network_.pick(4) == 0) rows.emplace_back(rows.back().first, 0);
        }
        for (size_t i = rows.size(); i > 1; --i) std::swap(rows[i - 1], rows[network_.pick(i)]);
        for (const auto &[key, value] : rows) {
            op.keys.push_back(key);
            op.values.push_back(value);
        }
        const auto &table = *op.transfer.table;
        op.transfer.kind = record.kind == Did::push   ? RequestKind::push_rows
                           : record.kind == Did::pull ? RequestKind::pull_rows
                                                      : RequestKind::push_pull_rows;
        op.transfer.range = {0, op.keys.size()};
        op.transfer.rows = std::make_shared<RowBatch>(
            table, RowBatch::Call{op.transfer.kind, op.keys.data(), op.keys.size(),
                                  op.values.data(), op.values.data()});
    }

    // What a pull has brought, in the order of the record.
    static void take_rows(Op &op) {
        std::map<uint64_t, uint64_t> rows;
        for (size_t i = 0; i < op.keys.size(); ++i) {
            auto [row, fresh] = rows.try_emplace(op.keys[i], op.values[i]);
            if (!fresh && row->second != op.values[i]) row->second = UINT64_MAX; // found wrong
        }
        for (uint64_t i = 0; i < op.record.range.count; ++i)
            op.record.received[i] = rows[(op.record.range.first + i) * 0x9e3779b97f4a7c15];
    }

    void start(uint32_t w, dtrain::ps::RequestKind kind, bool whole = false) {
        using dtrain::ps::RequestKind;
        Worker &worker = workers_[w];
        ops_.push_back(std::make_unique<Op>());
        Op *op = ops_.back().get();
        Record &record = op->record;
        record.worker = w;
        record.kind = did(kind);
        record.clock = worker.clock;
        bool fused_clock = kind == RequestKind::push_pull && scenario_.mode.collects();
        record.pull_clock = record.clock + fused_clock;
        worker.clock += fused_clock || kind == RequestKind::clock;
        record.started = network_.now();
        record.step = worker.table->clock;
        uint64_t first = whole ? 0 : network_.pick(scenario_.length);
        uint64_t most = scenario_.length - first;
        record.range = {first, whole ? most : 1 + network_.pick(most)};
        record.sent.assign(record.range.count, 0);
        for (uint64_t i = 0; i < record.range.count; ++i)
            if ((first + i) % scenario_.workers == w)
                record.sent[i] = uint64_t{1} << 4 * record.clock;
        record.received.assign(record.range.count, 0x5555555555555555);
        op->recorded = record.kind != Did::other;
        op->job = this;
        op->transfer.kind = kind;
        op->transfer.table = worker.table;
        op->transfer.range = {record.range.first, record.range.count};
        op->transfer.send = record.sent.data();
        op->transfer.receive = record.received.data();
        // Pushed and pulled may be the same memory.
        if (kind == RequestKind::push_pull && network_.pick(2) == 0) {
            record.received = record.sent;
            op->transfer.send = record.received.data();
        }
        if (scenario_.priorities) {
            op->transfer.priority = int32_t(network_.pick(3)) - 1;
            network_.client(w)->use_priorities();
        }
        op->transfer.owner = op;
        op->transfer.done = [](dtrain::ps::Transfer *transfer) {
            Op *self = static_cast<Op *>(transfer->owner);
            self->job->complete(self);
        };
        if (scenario_.sparse && op->recorded && kind != RequestKind::clock) make_rows(*op);
        ++worker.in_flight;
        network_.client(w)->start(op->transfer, network_.now());
        if (scenario_.timeout == INT64_MAX || kind == RequestKind::create) return;
        network_.at(network_.now() + scenario_.timeout, [this, op] {
            bool over = op->done || workers_[op->record.worker].gone;
            if (!over && network_.client(op->record.worker) != nullptr)
                network_.client(op->record.worker)
                    ->abandon(op->transfer, DTRAIN_ERR_TIMEOUT, "too slow");
        });
    }

    void complete(Op *op) {
        Worker &worker = workers_[op->record.worker];
        op->done = true;
        op->record.status = op->transfer.status;
        op->record.finished = network_.now();
        op->record.version = op->transfer.version;
        if (!op->keys.empty() && op->record.kind != Did::push) take_rows(*op);
        --worker.in_flight;
        if (op->transfer.kind == dtrain::ps::RequestKind::create)
            worker.created = op->transfer.status == DTRAIN_OK;
        if (op->transfer.status != DTRAIN_OK && op->transfer.status != DTRAIN_ERR_TIMEOUT)
            worker.failed = true;
        // Given back: whatever the wire still reads from it is wrong.
        op->transfer.rows.reset();
        std::fill(op->record.sent.begin(), op->record.sent.end(), 0x7777777777777777);
    }

    Scenario scenario_;
    SimNetwork network_;
    std::vector<Worker> workers_;
    const dtrain::ps::Partition partition_;
    int64_t first_left_ = INT64_MAX;
    std::vector<std::unique_ptr<Op>> ops_;
};
