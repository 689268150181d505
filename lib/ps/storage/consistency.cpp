// The rules of the consistency modes, and the clocks of workers.
// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/consistency.h"

#include "ps/table/protocol.h"
#include "ps/table/table_params.h"

#include <algorithm>

namespace dtrain::ps {

Mode mode_of(const TableParams &params) {
    return {params.consistency, params.staleness, params.quorum,
            collects_apart(params) ? 1 : open_clocks}; // sums by worker already need more memory
}

Clocks::Clocks(const Mode &mode, uint32_t workers)
    : mode_(mode), workers_(workers), present_(workers), at_lowest_(workers) {}

Verdict Clocks::push(uint32_t worker, uint64_t clock) const {
    uint64_t current = workers_[worker].clock;
    if (counts() && clock < applied_) return Verdict::stale;
    if (clock < current) return Verdict::passed;
    if (clock - current >= request_window) return Verdict::ahead;
    if (!collects()) return Verdict::go;
    if (waits_for_lost(clock + 1)) return Verdict::lost;
    return clock < applied_ + mode_.open ? Verdict::go : Verdict::wait;
}

Verdict Clocks::pull(uint64_t clock) const {
    if (mode_.consistency == DTRAIN_ASYNC) return Verdict::go;
    if (mode_.consistency == DTRAIN_BSP && clock < applied_) return Verdict::passed;
    uint64_t slack = collects() ? 0 : mode_.staleness;
    uint64_t needed = clock > slack ? clock - slack : 0;
    if ((collects() ? applied_ : lowest_) >= needed) return Verdict::go;
    return waits_for_lost(needed) ? Verdict::lost : Verdict::wait;
}

Verdict Clocks::next_update() const {
    if (mode_.consistency == DTRAIN_BSP) return Verdict::ahead;
    return counts() && waits_for_lost(applied_ + 1) ? Verdict::lost : Verdict::wait;
}

bool Clocks::pushed_since(const Worker &worker, uint64_t clock) {
    if (worker.clock > clock) return true;
    if (worker.open.empty()) return false;
    for (uint64_t k = clock; k < worker.clock + request_window; ++k)
        if (worker.open[k % request_window].seen > 0) return true;
    return false;
}

Verdict Clocks::cut(uint64_t clock) const {
    if (mode_.consistency != DTRAIN_SSP) return pull(clock);
    if (lowest_ < clock) return waits_for_lost(clock) ? Verdict::lost : Verdict::wait;
    auto ahead = [&](const Worker &worker) { return pushed_since(worker, clock); };
    return std::any_of(workers_.begin(), workers_.end(), ahead) ? Verdict::passed : Verdict::go;
}

Clocks::Open &Clocks::open(Worker &worker, uint64_t clock) {
    if (worker.open.empty()) worker.open.resize(request_window);
    return worker.open[clock % request_window];
}

void Clocks::count_push(uint32_t worker, uint64_t clock) {
    ++open(workers_[worker], clock).seen;
    settle(workers_[worker]);
}

Verdict Clocks::may_weigh(uint64_t clock) const {
    if (!collects() || clock < applied_ + open_clocks) return Verdict::go;
    return waits_for_lost(clock) ? Verdict::lost : Verdict::wait;
}

Verdict Clocks::announce(uint32_t index, uint64_t clock, uint32_t pushes, Weight weight) {
    Worker &worker = workers_[index];
    if (counts() && clock < applied_) return Verdict::stale;
    if (clock < worker.clock) return Verdict::passed;
    if (clock - worker.clock >= request_window) return Verdict::ahead;
    if (weight.value > 0 && may_weigh(clock) != Verdict::go) return may_weigh(clock);
    Open &entry = open(worker, clock);
    if (entry.ended || entry.seen > pushes) return Verdict::passed;
    entry.ended = true;
    entry.announced = pushes;
    entry.weight = weight;
    settle(worker);
    return Verdict::go;
}

void Clocks::settle(Worker &worker) {
    uint64_t before = worker.clock;
    for (;;) {
        Open &entry = open(worker, worker.clock);
        if (!entry.ended || entry.seen < entry.announced) break;
        if (entry.weight.value > 0)
            worker.contributed[worker.clock % open_clocks] = {worker.clock, entry.weight};
        entry = {};
        ++worker.clock;
    }
    bool was_lowest = worker.state == State::present && before == lowest_;
    if (worker.clock > before && was_lowest && --at_lowest_ == 0) find_lowest();
}

void Clocks::find_lowest() {
    lowest_ = UINT64_MAX;
    at_lowest_ = 0;
    for (const Worker &worker : workers_) {
        if (worker.state == State::left || worker.clock > lowest_) continue;
        at_lowest_ = worker.clock == lowest_ ? at_lowest_ + 1 : 1;
        lowest_ = worker.clock;
    }
}

uint64_t Clocks::highest() const {
    uint64_t most = 0;
    for (const Worker &worker : workers_) most = std::max(most, worker.clock);
    return most;
}

void Clocks::meet(const Mode &mode, uint64_t clock) {
    mode_ = mode;
    applied_ = clock;
    for (Worker &worker : workers_) {
        worker.clock = clock;
        worker.open.clear();
        std::fill_n(worker.contributed, open_clocks, Contribution{});
    }
    if (any_lost()) lowest_lost_ = clock;
    find_lowest();
}

void Clocks::forget_lost() {
    for (Worker &worker : workers_)
        if (worker.state == State::lost) worker.state = State::left;
    lowest_lost_ = UINT64_MAX;
    find_lowest();
}

void Clocks::leave(uint32_t index) {
    if (!present(index)) return;
    workers_[index].state = State::left;
    --present_;
    find_lowest();
}

void Clocks::lose(uint32_t index) {
    if (!present(index)) return;
    workers_[index].state = State::lost;
    --present_;
    lowest_lost_ = std::min(lowest_lost_, workers_[index].clock);
}

uint32_t Clocks::participants(uint64_t clock) const {
    auto took_part = [&](const Worker &worker) { return worker.clock > clock; };
    return static_cast<uint32_t>(std::count_if(workers_.begin(), workers_.end(), took_part));
}

// For clock applied() or a later one. Lost workers count, although they will never end it; workers
// that have left count only if they have ended it.
uint32_t Clocks::needed(uint64_t clock) const {
    auto counted = [&](const Worker &w) { return w.state != State::left || w.clock > clock; };
    auto all = std::count_if(workers_.begin(), workers_.end(), counted);
    return std::min(mode_.quorum, static_cast<uint32_t>(all));
}

bool Clocks::waits_for_lost(uint64_t clock) const {
    if (!any_lost() || clock == 0) return false;
    if (!counts()) return lowest_lost_ < clock;
    const uint64_t last = clock - 1; // if this clock can end, earlier ones can, too
    auto able = [&](const Worker &w) { return w.state == State::present || w.clock > last; };
    return std::count_if(workers_.begin(), workers_.end(), able) < needed(last);
}

bool Clocks::ready() const {
    if (!counts()) return present_ > 0 && lowest_ > applied_;
    const uint32_t due = needed(applied_);
    return due > 0 && participants(applied_) >= due;
}

void Clocks::advance() {
    ++applied_;
    if (!counts()) return;
    for (Worker &worker : workers_) {
        if (worker.state != State::present || worker.clock >= applied_) continue;
        if (!worker.open.empty()) open(worker, worker.clock) = {};
        ++worker.clock;
        if (!worker.open.empty()) settle(worker); // the worker may already have ended this clock
    }
    find_lowest();
}

double Clocks::divisor(uint64_t clock) const {
    double sum = 0;
    bool said = false;
    for (const Worker &worker : workers_) {
        const Contribution &its = worker.contributed[clock % open_clocks];
        if (worker.clock <= clock || its.clock != clock) continue;
        sum += its.weight.value;
        said |= its.weight.said;
    }
    return said ? sum : participants(clock);
}

std::optional<uint32_t> Clocks::slowest_before(uint64_t clock) const {
    std::optional<uint32_t> slowest;
    for (uint32_t i = 0; i < workers_.size(); ++i) {
        if (!present(i) || finished(i) >= clock) continue;
        slowest = i;
        clock = finished(i);
    }
    return slowest;
}

uint32_t Clocks::lost_worker() const {
    for (uint32_t i = 0; i < workers_.size(); ++i)
        if (workers_[i].state == State::lost && workers_[i].clock == lowest_lost_) return i;
    return 0;
}

} // namespace dtrain::ps
