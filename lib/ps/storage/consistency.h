// Which requests of a table may proceed: the workers' clocks and what ASYNC, BSP, SSP and QUORUM
// ask of them. SPDX-License-Identifier: Apache-2.0
//
// A worker's clock k is over for a server once the worker has announced its end and the server has
// seen all pushes of it that were announced, so no delay, loss or reordering lets a clock overtake
// its pushes. A worker that left no longer counts; one that was lost still does, for ever: what
// waits for it fails.
//
// QUORUM: as BSP, but a clock is over for all once as many workers as the quorum (or all that have
// not left, if that is fewer) have ended it: the others' clocks are moved up to the next one, and
// what still comes of it is stale. Source: TensorFlow's SyncReplicasOptimizer, after Chen et al.,
// "Revisiting Distributed Synchronous SGD" (2016).
#pragma once
#include "dtrain.h"

#include <cstdint>
#include <vector>

namespace dtrain::ps {

enum class Verdict : uint8_t {
    go,
    wait,
    lost,   // would wait for a worker that was lost
    passed, // the clock is over
    stale,  // QUORUM: the clock is over without it, which is no error
    ahead   // further ahead than a correct client can be
};

inline constexpr uint64_t open_clocks = 2; // BSP: clocks whose pushes are taken before they apply

struct Mode {
    uint32_t consistency = 0, staleness = 0, quorum = 0;
    uint64_t open = open_clocks; // of those that collect pushes
};
struct TableParams;
Mode mode_of(const TableParams &params);

// What a clock's pushes come to: sums, to be added up in this order, and what DTRAIN_AVG divides
// by.
struct ClockUpdate {
    uint64_t clock = 0;
    std::vector<uint32_t> sums = {};
    double divisor = 1;
};

// What a worker counts in a clock, and whether it has said so.
struct Weight {
    double value = 0;
    bool said = false;
};

class Clocks {
  public:
    Clocks(const Mode &mode, uint32_t workers); // all present, at clock 0

    Verdict push(uint32_t worker, uint64_t clock) const; // one that was not seen before
    Verdict pull(uint64_t clock) const;
    // Of a pull that waits for an update that no clock promises. BSP: ahead, there is none within
    // a clock.
    Verdict next_update() const;
    // Whether values are those of all clocks before this one and of no other (ASYNC: always go);
    // passed: pushes of this clock, or a later one, have been applied.
    Verdict cut(uint64_t clock) const;

    // A push of that clock, for which push() said go, has been decided.
    void count_push(uint32_t worker, uint64_t clock);
    // The end of the worker's clock, which has that many pushes. go, passed (a contradiction to
    // what was announced before or already seen), ahead, or what may_weigh() says.
    Verdict announce(uint32_t worker, uint64_t clock, uint32_t pushes, Weight weight = {});
    // Weights are kept for the open clocks only. go, wait or lost.
    Verdict may_weigh(uint64_t clock) const;
    void leave(uint32_t worker);
    // All workers are at that clock, which none is beyond, and what was open is gone.
    void meet(const Mode &mode, uint64_t clock);
    void forget_lost(); // they have left
    void lose(uint32_t worker);

    // BSP, QUORUM: clock applied() is over for all; apply its pushes, then call advance().
    bool ready() const;
    void advance();
    uint64_t applied() const { return applied_; } // BSP, QUORUM: clocks applied
    // The lowest number of finished clocks of a worker that counts; UINT64_MAX without any.
    uint64_t lowest() const { return lowest_; }
    uint64_t highest() const; // the most that a worker has finished
    uint64_t finished(uint32_t worker) const { return workers_[worker].clock; }
    // How many workers have taken part in that clock up to its end.
    uint32_t participants(uint64_t clock) const;
    // What DTRAIN_AVG divides the sum of that clock by, which is applied(): so many workers, or the
    // sum of their weights once one of them has said one.
    double divisor(uint64_t clock) const;
    bool took_part(uint32_t worker, uint64_t clock) const { return finished(worker) > clock; }
    bool any_lost() const { return lowest_lost_ != UINT64_MAX; }
    // The lost worker with the lowest clock; only when there is one.
    uint32_t lost_worker() const;
    bool present(uint32_t worker) const { return workers_[worker].state == State::present; }
    const Mode &mode() const { return mode_; }

  private:
    enum class State : uint8_t { present, left, lost };
    struct Open { // a clock that is not over
        uint32_t seen = 0, announced = 0;
        bool ended = false;
        Weight weight = {};
    };
    struct Contribution { // of a clock that is over, but not applied
        uint64_t clock = UINT64_MAX;
        Weight weight = {};
    };
    struct Worker {
        uint64_t clock = 0; // clocks 0 .. clock - 1 are over
        State state = State::present;
        std::vector<Open> open; // by clock % window; empty until the first push or clock
        Contribution contributed[open_clocks]; // by clock % open_clocks, where it has pushed
    };
    Open &open(Worker &worker, uint64_t clock);
    static bool pushed_since(const Worker &worker, uint64_t clock);
    void settle(Worker &worker);
    void find_lowest();
    bool waits_for_lost(uint64_t clock) const; // who waits until all clocks before this are over
    uint32_t needed(uint64_t clock) const;     // QUORUM: by so many it has to be ended
    bool collects() const {
        return mode_.consistency == DTRAIN_BSP || mode_.consistency == DTRAIN_QUORUM;
    }
    bool counts() const { return mode_.consistency == DTRAIN_QUORUM; }

    Mode mode_;
    std::vector<Worker> workers_;
    uint32_t present_;
    uint32_t at_lowest_; // workers whose clock is lowest_
    uint64_t lowest_ = 0, lowest_lost_ = UINT64_MAX, applied_ = 0;
};

} // namespace dtrain::ps
