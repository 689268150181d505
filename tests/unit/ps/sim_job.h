// Workers that push, pull and clock one table over a SimNetwork, and the history of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "history.h"
#include "ps/placement/placement_map.h"
#include "sim_gather.h"
#include "sim_network.h"
#include "sim_op.h"
#include "sim_scenario.h"
#include "weight_history.h"

#include <algorithm>
#include <bit>
#include <deque>

class SimJob {
    using RequestKind = dtrain::ps::RequestKind;

  public:
    explicit SimJob(const Scenario &scenario)
        : scenario_(scenario),
          network_(scenario.seed, scenario.workers, scenario.servers, scenario.faults,
                   client_config(scenario), scenario.peer_limit),
          partition_(dtrain::ps::make_partition(params_of(scenario.mode), scenario.servers)),
          workers_(scenario.workers), gathers_(scenario.later.size()) {
        if (scenario.dies >= 0)
            network_.at(scenario.when, [this] {
                workers_[uint32_t(scenario_.dies)].gone = any_gone_ = true;
                network_.kill_worker(uint32_t(scenario_.dies));
            });
        if (scenario.server_dies >= 0)
            network_.at(scenario.when,
                        [this] { network_.kill_server(uint32_t(scenario_.server_dies)); });
    }

    // "" or what went wrong.
    std::string run() {
        for (uint32_t w = 0; w < scenario_.workers; ++w) create(w);
        const int64_t limit = spoiled_ ? 200'000 : 1'000'000'000;
        // A worker may go on when nothing else moves.
        for (int still = 0; still < 10; still = network_.step() ? 0 : still + 1) {
            for (uint32_t w = 0; w < scenario_.workers; ++w) advance(w);
            if (network_.now() > limit) return "still busy at the end of time";
        }
        for (uint32_t w = 0; w < scenario_.workers; ++w)
            if (!workers_[w].gone && !workers_[w].finished)
                return "worker " + std::to_string(w) + " hangs" + where(w);
        return check(scenario_.mode);
    }
    // As if the table had begun in that mode, and been changed to the others.
    std::string check(Definition mode) const { return check(mode, scenario_.later); }
    std::string check(Definition mode, const std::vector<Definition> &later) const {
        return check(mode, later, scenario_.pushers);
    }
    std::string check(Definition mode, const std::vector<Definition> &later, bool pushers) const {
        std::vector<const Record *> history;
        for (const auto &op : ops_)
            if (op->recorded) history.push_back(&op->record);
        // Steps can be counted where no push was given up and pulls are one request per server.
        bool countable = scenario_.timeout == INT64_MAX &&
                         scenario_.chunk >= 16 * scenario_.length &&
                         scenario_.placement == dtrain::ps::Placement{} &&
                         (!scenario_.sparse || scenario_.servers == 1);
        Steps steps = {.until = first_left_, .whole_pushes = scenario_.min_versions};
        if (countable && scenario_.sparse) steps.parts.push_back({0, scenario_.length});
        for (uint32_t s = 0; countable && !scenario_.sparse && s < scenario_.servers; ++s) {
            const dtrain::ps::Part part = partition_.part(s);
            const uint64_t numbers = scenario_.numbers();
            if (part.ranges() > 0)
                steps.parts.push_back(
                    {part.range(0).first / numbers, part.range(0).count / numbers});
        }
        if (scenario_.weights)
            return WeightChecker(history, scenario_.workers, scenario_.clocks, mode, steps, pushers)
                .check();
        std::vector<Epoch> epochs = {{mode}};
        for (size_t i = 0; i < later.size(); ++i) epochs.push_back({later[i], gathers_[i].clock()});
        return HistoryChecker(history, whose(), epochs, steps).check();
    }
    // The first operation that failed and should not have, "" if none did.
    std::string first_failure() const {
        for (const auto &op : ops_)
            if (op->record.status != op->due) return op->transfer.text;
        return "";
    }
    void spoil(Spoil spoil) {
        network_.spoil(std::move(spoil));
        spoiled_ = true;
    }
    uint32_t refused() const { return refused_; } // by the limit of a worker
    SimNetwork &network() { return network_; }
    bool changed() const { // every mode was reached by all
        return std::all_of(workers_.begin(), workers_.end(), [&](const Worker &worker) {
            return worker.epoch == scenario_.later.size();
        });
    }

  private:
    // Of a change of mode, as lib/tables/consistency.cpp makes it.
    enum class Change : uint8_t { none, asks, ends_clock, agrees, tells, decides, refuses };
    struct Worker {
        dtrain::ps::ClientTable *table = nullptr;
        uint32_t in_flight = 0, steps_left = 0;
        uint64_t clock = 0, due = 0; // its own count; of this epoch
        uint64_t whole_pushes = 0;   // clocks that begin with one
        uint64_t own_clock = 0;      // of the table, before they met
        uint32_t epoch = 0;
        Change change = Change::none;
        dtrain_status_t status = 0; // of the change
        uint64_t made = 0;          // servers that have made it
        bool heard = false;         // of the others
        bool stays = false;         // in its mode: a change has failed
        bool created = false, gone = false, finished = false, failed = false, last_pull = false;
    };

    static dtrain::ps::Client::Config client_config(const Scenario &scenario) {
        dtrain::ps::Client::Config config;
        config.chunk = scenario.chunk;
        config.bound = 2 * scenario.chunk;
        config.retry_ns = 4 * scenario.faults.longest_delay;
        return config;
    }
    std::string where(uint32_t w) const {
        std::string text = " in epoch " + std::to_string(workers_[w].epoch) + ", change " +
                           std::to_string(int(workers_[w].change)) + "; requests in flight:";
        for (const auto &op : ops_)
            if (op->record.worker == w && !op->done)
                text += " " + std::to_string(int(op->transfer.kind));
        return text;
    }
    const Definition &mode(const Worker &worker) const { return scenario_.mode_of(worker.epoch); }

    dtrain::ps::TableParams params_of(const Definition &mode) const {
        dtrain::ps::TableParams params;
        const uint32_t numbers = scenario_.numbers();
        params.length = scenario_.sparse ? 0 : scenario_.length * numbers;
        params.dim = scenario_.sparse ? numbers : 0;
        params.max_bytes = scenario_.keeps ? 1 << 30 : 0;
        params.dtype = scenario_.weights ? DTRAIN_F64 : DTRAIN_U64;
        if (scenario_.narrow()) {
            params.dtype = DTRAIN_F32;
            params.row_length = scenario_.sparse ? 0 : numbers;
            params.storage_dtype = scenario_.storage;
            params.wire_dtype = scenario_.wire;
        }
        if (scenario_.weights) params.aggregate = DTRAIN_AVG;
        if (scenario_.pushers) params.mean_over = DTRAIN_MEAN_PUSHERS;
        params.consistency = mode.consistency;
        params.staleness = mode.staleness;
        set_rule(scenario_.added_by, scenario_.pinned(), params);
        params.quorum = mode.quorum;
        params.reproducible = scenario_.reproducible;
        params.placement = scenario_.placement;
        const bool usual = scenario_.placement == dtrain::ps::Placement{};
        if (scenario_.sparse && usual) params.placement.policy = DTRAIN_PLACE_HASH;
        return params;
    }

    void create(uint32_t w) {
        (void)network_.client(w)->open("table", params_of(scenario_.mode), workers_[w].table);
        workers_[w].due = scenario_.clocks;
        start(w, RequestKind::create);
    }

    void advance(uint32_t w) {
        Worker &worker = workers_[w];
        if (worker.gone || worker.finished) return;
        if (worker.change != Change::none && !worker.failed) return advance_change(w);
        uint32_t most = scenario_.in_flight_together ? 1 + uint32_t(network_.pick(6)) : 1;
        bool early = scenario_.leaves_early == int32_t(w);
        uint64_t clocks = early ? scenario_.clocks / 2 : worker.due;
        while (worker.in_flight < most && !worker.gone && !worker.finished) {
            if (!worker.created || worker.failed || worker.clock >= clocks) {
                if (worker.in_flight > 0) return;
                if (worker.last_pull || worker.failed || early) return finish(w);
                if (worker.epoch < scenario_.later.size() && !worker.stays) {
                    if (first_push_is_due(worker)) return start(w, RequestKind::push, true);
                    return ask(w);
                }
                worker.last_pull = true;
                start(w, RequestKind::pull, true);
            } else {
                one_step(w);
            }
        }
    }

    void ask(uint32_t w) {
        const auto wanted = params_of(scenario_.later[workers_[w].epoch]);
        workers_[w].change = Change::asks;
        workers_[w].status = DTRAIN_OK;
        workers_[w].heard = false;
        start(w, RequestKind::set_mode, false, mode_bits(wanted) | dtrain::ps::mode_only_asks);
    }

    void advance_change(uint32_t w) {
        Worker &worker = workers_[w];
        if (worker.in_flight > 0) return;
        SimGather &gather = gathers_[worker.epoch];
        const auto wanted = params_of(scenario_.later[worker.epoch]);
        switch (worker.change) {
        case Change::asks: worker.change = Change::ends_clock; return start(w, RequestKind::clock);
        case Change::ends_clock:
            worker.change = Change::agrees;
            gather.say(w, {worker.status, worker.table->clock});
            if (!gather.complete(scenario_.workers)) return;
            for (uint32_t other = 0; other < scenario_.workers; ++other)
                network_.at(network_.now() + 1 + int64_t(network_.pick(100)),
                            [this, other] { workers_[other].heard = true; });
            return;
        case Change::agrees:
            if (!worker.heard && !any_gone_) return;
            ++worker.table->changes;
            if (!worker.heard) {
                worker.change = Change::refuses;
                return start(w, RequestKind::set_mode, false,
                             mode_bits(wanted) | dtrain::ps::mode_refused);
            }
            if (!gather.all_can()) return stay(w);
            worker.change = Change::tells;
            worker.own_clock = worker.table->clock;
            worker.table->clock = gather.clock();
            return start(w, RequestKind::set_mode, false, mode_bits(wanted));
        case Change::refuses: return stay(w);
        default:
            if (worker.status == DTRAIN_ERR_PEER && worker.made > 0 &&
                worker.change == Change::tells) {
                worker.change = Change::decides;
                return start(w, RequestKind::set_mode, false,
                             mode_bits(wanted) | dtrain::ps::mode_decided);
            }
            if (worker.status == DTRAIN_ERR_STATE || // somebody has not heard, or was lost
                (worker.status == DTRAIN_ERR_PEER && worker.made == 0)) {
                worker.table->clock = worker.own_clock;
                return stay(w);
            }
            worker.table->meet(wanted, gather.clock());
            ++worker.epoch;
            worker.change = Change::none;
            worker.due = worker.clock + scenario_.clocks;
        }
    }

    void stay(uint32_t w) {
        workers_[w].change = Change::none;
        workers_[w].stays = true;
    }

    void finish(uint32_t w) {
        workers_[w].finished = true;
        any_gone_ |= workers_[w].epoch < scenario_.later.size();
        first_left_ = std::min(first_left_, network_.now());
        network_.client(w)->destroy(workers_[w].table, network_.now());
        if (scenario_.leaves_early == int32_t(w)) network_.leave(w);
    }

    // QUORUM: each clock begins with one of everything, so that every contribution shows.
    bool first_push_is_due(Worker &worker) const {
        if (mode(worker).quorum == 0 || worker.whole_pushes > worker.clock) return false;
        worker.whole_pushes = worker.clock + 1;
        return true;
    }

    void one_step(uint32_t w) {
        Worker &worker = workers_[w];
        const bool whole = scenario_.min_versions, quorum = mode(worker).quorum > 0;
        bool full = worker.steps_left == 0; // of this clock
        uint64_t choice = full ? 3 : network_.pick(3);
        if (worker.steps_left > 0) --worker.steps_left;
        if (first_push_is_due(worker)) return start(w, RequestKind::push, true);
        if (choice == 0)
            start(w, RequestKind::push, whole);
        else if (choice == 1)
            start(w, RequestKind::pull, whole || (quorum && network_.pick(2) == 0));
        else if (choice == 2)
            start(w, RequestKind::push_pull, whole);
        else
            start(w, RequestKind::clock);
        if (full || (mode(worker).collects() && choice == 2))
            worker.steps_left = uint32_t(network_.pick(5));
    }

    Whose whose() const {
        return {scenario_.workers, scenario_.narrow() ? scenario_.all_clocks() : 0};
    }
    double weight_of(const Worker &worker, uint32_t w) const {
        constexpr double weights[] = {0, 0, 0.125, 1, 2.5, 40};
        return weights[(scenario_.seed >> (7 * w + 3 * worker.clock) % 60) % std::size(weights)];
    }
    // What a push adds to the element.
    uint64_t pushed(const Record &record, uint64_t element) const {
        const bool own = element % scenario_.workers == record.worker;
        if (scenario_.narrow())
            return narrow_element(own && whose().in(element, record.clock), scenario_.pinned());
        if (!own) return 0;
        if (!scenario_.weights) return uint64_t{1} << 4 * record.clock;
        const bool its = element / scenario_.workers % scenario_.clocks == record.clock;
        return std::bit_cast<uint64_t>(its ? 1.0 : 0.0);
    }

    uint64_t as_digits(uint64_t received, uint64_t element) const {
        const uint64_t clock = element / scenario_.workers % scenario_.all_clocks();
        return digits_of(received, scenario_.pinned(), clock);
    }

    // A version that will come, or a failure that is due.
    void wait_for_version(SimOp &op) {
        const Definition &mode = scenario_.mode;
        uint64_t &version = op.record.min_version;
        if (mode.collects()) {
            version = op.record.pull_step + network_.pick(2);
            const bool later = version > op.record.pull_step;
            if (later && mode.quorum == 0) op.due = DTRAIN_ERR_STATE;
            op.may_time_out = later && mode.quorum > 0; // the others may wait for this worker
        } else if (pushes_ > 0) {
            version = 1 + network_.pick(pushes_);
        }
        op.may_time_out |= !scenario_.harmless();
        op.transfer.min_version = version;
    }

    void start(uint32_t w, RequestKind kind, bool whole = false, uint64_t argument = 0) {
        Worker &worker = workers_[w];
        ops_.push_back(std::make_unique<SimOp>());
        SimOp *op = ops_.back().get();
        Record &record = op->record;
        record.worker = w;
        record.kind = did(kind);
        record.clock = worker.clock;
        record.epoch = worker.epoch;
        bool fused_clock = kind == RequestKind::push_pull && mode(worker).collects();
        record.pull_clock = record.clock + fused_clock;
        record.started = network_.now();
        record.step = record.pull_step = worker.table->clock;
        uint64_t first = whole ? 0 : network_.pick(scenario_.length);
        uint64_t most = scenario_.length - first;
        record.range = {first, whole ? most : 1 + network_.pick(most)};
        record.sent.assign(record.range.count, 0);
        for (uint64_t i = 0; i < record.range.count; ++i)
            record.sent[i] = pushed(record, first + i);
        record.received.assign(record.range.count, 0x5555555555555555);
        op->recorded = record.kind != Did::other;
        op->job = this;
        op->transfer.kind = kind;
        op->transfer.argument = argument;
        op->transfer.table = worker.table;
        op->transfer.range = {record.range.first * scenario_.numbers(),
                              record.range.count * scenario_.numbers()};
        op->transfer.send = record.sent.data();
        op->transfer.receive = record.received.data();
        if (scenario_.weights && record.pushes())
            op->transfer.weight = record.weight = weight_of(worker, w);
        if (scenario_.min_versions && kind == RequestKind::pull && network_.pick(2) == 0)
            wait_for_version(*op);
        pushes_ += record.pushes();
        worker.clock += fused_clock || kind == RequestKind::clock;
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
            auto *self = static_cast<SimOp *>(transfer->owner);
            self->job->complete(self);
        };
        if (scenario_.pushers && kind == RequestKind::push)
            op->leave_out([&](uint64_t below) { return network_.pick(below); });
        if (scenario_.sparse && op->recorded && kind != RequestKind::clock)
            op->make_rows([&](uint64_t below) { return network_.pick(below); },
                          scenario_.narrow() ? narrow_element(0, scenario_.pinned()) : 0);
        ++worker.in_flight;
        network_.client(w)->start(op->transfer, network_.now());
        if (fused_clock) record.pull_step = worker.table->clock;
        const int64_t timeout =
            op->may_time_out ? 40 * scenario_.faults.longest_delay : scenario_.timeout;
        if (timeout == INT64_MAX || kind == RequestKind::create) return;
        network_.at(network_.now() + timeout, [this, op] {
            bool over = op->done || workers_[op->record.worker].gone;
            if (!over && network_.client(op->record.worker) != nullptr)
                network_.client(op->record.worker)
                    ->abandon(op->transfer, DTRAIN_ERR_TIMEOUT, "too slow");
        });
    }

    void complete(SimOp *op) {
        Worker &worker = workers_[op->record.worker];
        const dtrain_status_t status = op->transfer.status;
        op->done = true;
        op->record.status = status;
        op->record.finished = network_.now();
        op->record.version = op->transfer.version;
        if (op->may_time_out && status == DTRAIN_ERR_TIMEOUT) op->due = status;
        if (!op->keys.empty() && op->record.kind != Did::push) op->take_rows();
        for (uint64_t i = 0; i < op->record.range.count && scenario_.narrow(); ++i)
            op->record.received[i] = as_digits(op->record.received[i], op->record.range.first + i);
        --worker.in_flight;
        if (op->transfer.kind == RequestKind::create) worker.created = status == DTRAIN_OK;
        const bool tells = worker.change == Change::tells || worker.change == Change::decides;
        if (tells || worker.status == DTRAIN_OK) worker.status = status;
        if (tells) worker.made = op->transfer.total;
        const bool not_agreed = tells && (status == DTRAIN_ERR_STATE || status == DTRAIN_ERR_PEER);
        const bool over_limit = status == DTRAIN_ERR_LIMIT && scenario_.peer_limit > 0;
        refused_ += over_limit;
        if (status != op->due && status != DTRAIN_ERR_TIMEOUT && !not_agreed && !over_limit)
            worker.failed = true;
        // Given back: whatever the wire still reads from it is wrong.
        op->transfer.rows.reset();
        std::fill(op->record.sent.begin(), op->record.sent.end(), 0x7777777777777777);
    }

    Scenario scenario_;
    SimNetwork network_;
    const dtrain::ps::Partition partition_;
    std::vector<Worker> workers_;
    std::vector<SimGather> gathers_; // of each change
    bool any_gone_ = false, spoiled_ = false;
    uint64_t pushes_ = 0; // started
    uint32_t refused_ = 0;
    int64_t first_left_ = INT64_MAX;
    std::vector<std::unique_ptr<SimOp>> ops_;
};
