// Which requests of a table may proceed: the workers' clocks and what ASYNC, BSP and SSP ask of
// them. SPDX-License-Identifier: Apache-2.0
//
// A worker's clock k is over for a server once the worker has announced its end and the server has
// seen all pushes of it that were announced, so no delay, loss or reordering lets a clock overtake
// its pushes. A worker that left no longer counts; one that was lost still does, for ever: what
// waits for it fails.
#pragma once
#include <cstdint>
#include <vector>

namespace dtrain::ps {

enum class Verdict : uint8_t {
    go,
    wait,
    lost,   // would wait for a worker that was lost
    passed, // the clock is over
    ahead   // further ahead than a correct client can be
};

inline constexpr uint64_t open_clocks = 2; // BSP: clocks whose pushes are taken before they apply

class Clocks {
  public:
    // consistency: DTRAIN_ASYNC, DTRAIN_BSP or DTRAIN_SSP. All workers are present, at clock 0.
    Clocks(uint32_t consistency, uint32_t staleness, uint32_t workers);

    Verdict push(uint32_t worker, uint64_t clock) const; // one that was not seen before
    Verdict pull(uint64_t clock) const;
    // Whether values are those of all clocks before this one and of no other (ASYNC: always go);
    // passed: pushes of this clock, or a later one, have been applied.
    Verdict cut(uint64_t clock) const;

    // A push of that clock, for which push() said go, has been decided.
    void count_push(uint32_t worker, uint64_t clock);
    // The end of the worker's clock, which has that many pushes. go, passed (a contradiction to
    // what was announced before or already seen) or ahead.
    Verdict announce(uint32_t worker, uint64_t clock, uint32_t pushes);
    void leave(uint32_t worker);
    void lose(uint32_t worker);

    // BSP: clock applied() is over for all; apply its pushes, then call advance().
    bool ready() const { return present_ > 0 && lowest_ > applied_; }
    void advance() { ++applied_; }
    uint64_t applied() const { return applied_; } // BSP: clocks applied
    // The lowest number of finished clocks of a worker that counts; UINT64_MAX without any.
    uint64_t lowest() const { return lowest_; }
    uint64_t finished(uint32_t worker) const { return workers_[worker].clock; }
    // How many workers have taken part in that clock up to its end.
    uint32_t participants(uint64_t clock) const;
    bool any_lost() const { return lowest_lost_ != UINT64_MAX; }
    // The lost worker with the lowest clock; only when there is one.
    uint32_t lost_worker() const;
    bool present(uint32_t worker) const { return workers_[worker].state == State::present; }

  private:
    enum class State : uint8_t { present, left, lost };
    struct Open { // a clock that is not over
        uint32_t seen = 0, announced = 0;
        bool ended = false;
    };
    struct Worker {
        uint64_t clock = 0; // clocks 0 .. clock - 1 are over
        State state = State::present;
        std::vector<Open> open; // by clock % window; empty until the first push or clock
    };
    Open &open(Worker &worker, uint64_t clock);
    static bool pushed_since(const Worker &worker, uint64_t clock);
    void settle(Worker &worker);
    void find_lowest();
    bool waits_for_lost(uint64_t clock) const { return lowest_lost_ < clock; }

    uint32_t consistency_, staleness_;
    std::vector<Worker> workers_;
    uint32_t present_;
    uint32_t at_lowest_; // workers whose clock is lowest_
    uint64_t lowest_ = 0, lowest_lost_ = UINT64_MAX, applied_ = 0;
};

} // namespace dtrain::ps
