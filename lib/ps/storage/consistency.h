// Decides which requests of a table may proceed, by the workers' clocks and the rules of ASYNC,
// BSP, SSP and QUORUM.
// SPDX-License-Identifier: Apache-2.0
//
// A worker's clock k is over for a server once the worker has announced its end and the server has
// seen all announced pushes of it, so no delay, loss or reordering lets a clock overtake its
// pushes. A worker that has left no longer counts. A worker that was lost still counts, until
// forget_lost(): requests that wait for it fail.
//
// QUORUM: like BSP, but a clock is over for all workers once as many of them as the quorum (or all
// that have not left, if they are fewer) have ended it. The clocks of the other workers move to the
// next one, and their late requests for the old one are stale. Source: TensorFlow's
// SyncReplicasOptimizer, after Chen et al., "Revisiting Distributed Synchronous SGD" (2016).
#pragma once
#include "dtrain.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace dtrain::ps {

enum class Verdict : uint8_t {
    go,
    wait,
    lost,   // would wait for a worker that was lost
    passed, // the clock is over
    stale,  // QUORUM: the clock is over without this request, which is not an error
    ahead   // further ahead than a correct client can be
};

inline constexpr uint64_t open_clocks = 2; // BSP: clocks whose pushes are collected at a time

struct Mode {
    uint32_t consistency = 0, staleness = 0, quorum = 0;
    uint64_t open = open_clocks; // clocks whose pushes are collected at a time
};
struct TableParams;
Mode mode_of(const TableParams &params);

// The update of a clock: the sums to add up, in this order, and the divisor for DTRAIN_AVG.
struct ClockUpdate {
    uint64_t clock = 0;
    std::vector<uint32_t> sums = {};
    double divisor = 1;
};

// The weight of a worker in a clock, and whether the worker has given it.
struct Weight {
    double value = 0;
    bool said = false;
};

class Clocks {
  public:
    Clocks(const Mode &mode, uint32_t workers); // all are present, at clock 0

    Verdict push(uint32_t worker, uint64_t clock) const; // for a push that was not counted yet
    Verdict pull(uint64_t clock) const;
    // For a pull that waits for a later update than its clock requires. BSP: ahead, since there are
    // no updates within a clock.
    Verdict next_update() const;
    // For a save: go if the values include all clocks before this one and no pushes of later ones
    // (ASYNC: always go). passed: pushes of this clock or a later one have been applied.
    Verdict cut(uint64_t clock) const;

    // Counts a push of that clock, which was applied, refused or canceled.
    void count_push(uint32_t worker, uint64_t clock);
    // Announces the end of the worker's clock with its number of pushes. Returns go, stale, passed
    // (it contradicts an earlier announcement or the pushes seen), ahead, or the verdict of
    // may_weigh().
    Verdict announce(uint32_t worker, uint64_t clock, uint32_t pushes, Weight weight = {});
    // Whether a weight for this clock can be stored, which is possible for open clocks only.
    // Returns go, wait or lost.
    Verdict may_weigh(uint64_t clock) const;
    void leave(uint32_t worker);
    // Changes the mode and sets all workers to that clock, which none has passed. Open clocks are
    // discarded.
    void meet(const Mode &mode, uint64_t clock);
    void forget_lost(); // lost workers count as left from now on
    void lose(uint32_t worker);

    // BSP, QUORUM: whether clock applied() is over for all workers. Then apply its pushes and call
    // advance().
    bool ready() const;
    void advance();
    uint64_t applied() const { return applied_; } // BSP, QUORUM: the number of applied clocks
    // The lowest number of finished clocks of the workers that count; UINT64_MAX if none counts.
    uint64_t lowest() const { return lowest_; }
    uint64_t highest() const; // the highest number of finished clocks of a worker
    uint64_t finished(uint32_t worker) const { return workers_[worker].clock; }
    // The number of workers that have ended that clock.
    uint32_t participants(uint64_t clock) const;
    // The divisor of DTRAIN_AVG for clock applied(): the number of participants, or the sum of
    // their weights if any of them has given one.
    double divisor(uint64_t clock) const;
    bool took_part(uint32_t worker, uint64_t clock) const { return finished(worker) > clock; }
    // The present worker with the lowest clock, if that is before this one.
    std::optional<uint32_t> slowest_before(uint64_t clock) const;
    bool any_lost() const { return lowest_lost_ != UINT64_MAX; }
    // The lost worker with the lowest clock. There must be a lost worker.
    uint32_t lost_worker() const;
    bool present(uint32_t worker) const { return workers_[worker].state == State::present; }
    const Mode &mode() const { return mode_; }

  private:
    enum class State : uint8_t { present, left, lost };
    struct Open { // a clock of a worker that is not over
        uint32_t seen = 0, announced = 0;
        bool ended = false;
        Weight weight = {};
    };
    struct Contribution { // to a clock that is over but not applied
        uint64_t clock = UINT64_MAX;
        Weight weight = {};
    };
    struct Worker {
        uint64_t clock = 0; // clocks 0 .. clock - 1 are over
        State state = State::present;
        std::vector<Open> open; // by clock % request_window; empty until the first push or clock
        Contribution contributed[open_clocks]; // by clock % open_clocks, if the weight is above 0
    };
    Open &open(Worker &worker, uint64_t clock);
    static bool pushed_since(const Worker &worker, uint64_t clock);
    void settle(Worker &worker);
    void find_lowest();
    // Whether a lost worker keeps the clocks before this one from ever being over.
    bool waits_for_lost(uint64_t clock) const;
    uint32_t needed(uint64_t clock) const; // QUORUM: the number of workers that must end the clock
    bool collects() const {
        return mode_.consistency == DTRAIN_BSP || mode_.consistency == DTRAIN_QUORUM;
    }
    bool counts() const { return mode_.consistency == DTRAIN_QUORUM; }

    Mode mode_;
    std::vector<Worker> workers_;
    uint32_t present_;
    uint32_t at_lowest_; // number of workers whose clock is lowest_
    uint64_t lowest_ = 0, lowest_lost_ = UINT64_MAX, applied_ = 0;
};

} // namespace dtrain::ps
