// SPDX-License-Identifier: Apache-2.0
#include "ps/consistency.h"

#include "ps/protocol.h"

#include <algorithm>

namespace dtrain::ps {

Clocks::Clocks(uint32_t consistency, uint32_t staleness, uint32_t workers)
    : consistency_(consistency), staleness_(staleness), workers_(workers), present_(workers),
      at_lowest_(workers) {}

Verdict Clocks::push(uint32_t worker, uint64_t clock) const {
    uint64_t current = workers_[worker].clock;
    if (clock < current) return Verdict::passed;
    if (clock - current >= request_window) return Verdict::ahead;
    if (consistency_ != DTRAIN_BSP) return Verdict::go;
    if (waits_for_lost(clock + 1)) return Verdict::lost;
    return clock < applied_ + open_clocks ? Verdict::go : Verdict::wait;
}

Verdict Clocks::pull(uint64_t clock) const {
    if (consistency_ == DTRAIN_ASYNC) return Verdict::go;
    bool bsp = consistency_ == DTRAIN_BSP;
    if (bsp && clock < applied_) return Verdict::passed;
    uint64_t slack = bsp ? 0 : staleness_;
    uint64_t needed = clock > slack ? clock - slack : 0;
    if ((bsp ? applied_ : lowest_) >= needed) return Verdict::go;
    return waits_for_lost(needed) ? Verdict::lost : Verdict::wait;
}

bool Clocks::pushed_since(const Worker &worker, uint64_t clock) {
    if (worker.clock > clock) return true;
    if (worker.open.empty()) return false;
    for (uint64_t k = clock; k < worker.clock + request_window; ++k)
        if (worker.open[k % request_window].seen > 0) return true;
    return false;
}

Verdict Clocks::cut(uint64_t clock) const {
    if (consistency_ != DTRAIN_SSP) return pull(clock);
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

Verdict Clocks::announce(uint32_t index, uint64_t clock, uint32_t pushes) {
    Worker &worker = workers_[index];
    if (clock < worker.clock) return Verdict::passed;
    if (clock - worker.clock >= request_window) return Verdict::ahead;
    Open &entry = open(worker, clock);
    if (entry.ended || entry.seen > pushes) return Verdict::passed;
    entry.ended = true;
    entry.announced = pushes;
    settle(worker);
    return Verdict::go;
}

void Clocks::settle(Worker &worker) {
    uint64_t before = worker.clock;
    for (;;) {
        Open &entry = open(worker, worker.clock);
        if (!entry.ended || entry.seen < entry.announced) break;
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

uint32_t Clocks::lost_worker() const {
    for (uint32_t i = 0; i < workers_.size(); ++i)
        if (workers_[i].state == State::lost && workers_[i].clock == lowest_lost_) return i;
    return 0;
}

} // namespace dtrain::ps
