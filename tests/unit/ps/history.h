// What workers did to a table and saw of it, and whether that fits a consistency mode's definition.
// SPDX-License-Identifier: Apache-2.0
//
// Tables are u64 with rule ADD. Element e belongs to worker e % workers: a push at clock k adds
// 16^k to the elements of its range that belong to the pusher and 0 to the others, so hexadecimal
// digit k of an element counts the pushes of its worker at clock k that were applied. A worker's
// clocks are those that it has ended, also where a server has moved it further. With `Whose` an
// element is for one of its worker's clocks, and has only that digit.
//
// QUORUM: what a worker has pushed in a clock is in the values whole or not at all, and only once
// it has ended the clock. Where every worker pushes to every element in every clock, and a pull is
// one request per server, what it sees there is of exactly `quorum` workers per step.
//
// Where the mode is changed, each mode that was in force is an epoch. All workers begin one at the
// same clock of the table (`step`), and what was pushed before is in the values, but for what no
// quorum has ended.
#pragma once
#include "dtrain.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

enum class Did : uint8_t { other, push, pull, push_pull, clock };

struct Span {
    uint64_t first = 0, count = 0; // elements
    uint64_t end() const { return first + count; }
};

constexpr uint64_t unknown = UINT64_MAX;
constexpr uint32_t most_clocks = 16, most_pushes = 15; // of one element in one clock

struct Record {
    uint32_t worker = 0;
    Did kind = Did::other;
    uint64_t clock = 0; // of the push; of the pull where there is no push
    uint64_t pull_clock = 0;
    uint32_t epoch = 0; // that the worker was in
    Span range;
    int64_t started = 0, finished = INT64_MAX;
    dtrain_status_t status = 0;
    uint64_t version = 0;     // of a pull, as its operation says
    uint64_t min_version = 0; // that it was to wait for
    double weight = 0;        // of a push; 0: not said
    // The table's clock that a push is for, and that a pull waits for; under QUORUM it may be
    // further than the worker's own.
    uint64_t step = unknown, pull_step = unknown;
    std::vector<uint64_t> sent, received;
    std::vector<bool> left_out = {}; // of a push of rows: of its range, or none are

    bool carries(uint64_t element) const { // a push
        if (element < range.first || element >= range.end()) return false;
        return left_out.empty() || !left_out[element - range.first];
    }
    bool fused() const { return kind == Did::push_pull; }
    bool pushes() const { return kind == Did::push || fused(); }
    bool pulls() const { return kind == Did::pull || fused(); }
    bool clocks() const { return kind == Did::clock || fused(); }
};

struct Definition {
    uint32_t consistency = 0, staleness = 0, quorum = 0;
    bool collects() const { return consistency == DTRAIN_BSP || consistency == DTRAIN_QUORUM; }
};

struct Epoch {
    Definition mode;
    uint64_t from = 0; // its first step
};

// Which worker an element belongs to. clocks: of which element e is for number e / workers %
// clocks; 0: for all.
struct Whose {
    uint32_t workers = 1, clocks = 0;
    uint32_t worker(uint64_t element) const { return uint32_t(element % workers); }
    bool in(uint64_t element, uint64_t clock) const {
        return clocks == 0 || element / workers % clocks == clock;
    }
    uint64_t elements() const { return uint64_t{workers} * std::max<uint32_t>(clocks, 1); }
};

// Where a pull is one request per server: until when all workers are there.
struct Steps {
    int64_t until = -1;
    std::vector<Span> parts = {}; // of the servers
    bool whole_pushes = false;    // each is to all elements
};

class HistoryChecker {
  public:
    HistoryChecker(const std::vector<const Record *> &history, Whose whose,
                   const std::vector<Epoch> &epochs, const Steps &steps = {})
        : history_(history), workers_(whose.workers), whose_(whose), epochs_(epochs),
          steps_(steps) {}
    HistoryChecker(const std::vector<const Record *> &history, uint32_t workers, Definition mode,
                   const Steps &steps = {})
        : HistoryChecker(history, Whose{workers}, std::vector<Epoch>{{mode}}, steps) {}

    // "" when every finished pull fits the definition, else what does not.
    std::string check() const {
        for (const Record *pull : history_) {
            if (!pull->pulls() || pull->status != 0 || pull->finished == INT64_MAX) continue;
            for (uint64_t i = 0; i < pull->range.count; ++i) {
                std::string error = check_element(*pull, pull->range.first + i, pull->received[i]);
                if (!error.empty()) return error;
            }
            if (std::string error = check_version(*pull); !error.empty()) return error;
            const bool whole = !steps_.parts.empty() && pull->range.first == 0 &&
                               pull->range.count == steps_.parts.back().end();
            if (!whole) continue;
            for (const Span &part : steps_.parts) {
                std::string error = check_updates(*pull, part);
                for (uint32_t e = 0; e <= pull->epoch && error.empty(); ++e)
                    if (mode(e).quorum > 0 && pull->finished < steps_.until)
                        error = check_steps(*pull, part, e);
                if (!error.empty()) return error;
            }
        }
        return "";
    }

  private:
    struct Bounds {
        uint64_t least = 0, most = 0;
        bool may_be_none = false; // dropped with its step
    };

    const Definition &mode(uint32_t epoch) const { return epochs_[epoch].mode; }

    // Whether the worker had begun to end that clock before the pull was over.
    bool may_have_ended(const Record &pull, uint32_t worker, uint64_t clock) const {
        for (const Record *end : history_)
            if (end->clocks() && end->worker == worker && end->clock == clock &&
                end->started <= pull.finished)
                return true;
        return false;
    }

    const Record *push_of(uint32_t worker, uint64_t clock) const {
        for (const Record *push : history_)
            if (push->pushes() && push->worker == worker && push->clock == clock) return push;
        return nullptr;
    }

    // The updates that its servers say they had made. BSP: one per clock.
    std::string check_version(const Record &pull) const {
        if (pull.fused()) return ""; // its pushes' answers are older
        uint64_t most = 0;
        for (const Record *push : history_)
            most += push->pushes() && push->started <= pull.finished;
        const bool bsp = mode(0).consistency == DTRAIN_BSP;
        if (epochs_.size() > 1)
            most = UINT64_MAX; // pushes and clocks
        else if (mode(0).collects())
            most = bsp ? pull.pull_clock : UINT64_MAX;
        const uint64_t least = bsp && epochs_.size() == 1 ? most : pull.min_version;
        if (pull.version >= std::max(least, pull.min_version) && pull.version <= most) return "";
        char text[200];
        std::snprintf(text, sizeof text,
                      "worker %u's pull at clock %llu, of version %llu or later, says version %llu",
                      pull.worker, ull(pull.pull_clock), ull(pull.min_version), ull(pull.version));
        return text;
    }

    // ASYNC, SSP: as many pushes are in a server's part as the version says, or more.
    std::string check_updates(const Record &pull, const Span &part) const {
        if (!steps_.whole_pushes || epochs_.size() > 1 || mode(0).collects() || pull.fused() ||
            part.count < workers_)
            return "";
        uint64_t seen = 0;
        for (uint64_t e = part.first; e < part.first + workers_; ++e)
            for (uint64_t clock = 0; clock < most_clocks; ++clock)
                seen += pull.received[e] >> 4 * clock & 15;
        if (seen >= pull.version) return "";
        return "a pull of version " + std::to_string(pull.version) + " saw " +
               std::to_string(seen) + " pushes";
    }

    // Contributions of an epoch that the pull saw in a server's part: of so many workers per step,
    // of none twice, and of at least as many steps as it waited for.
    std::string check_steps(const Record &pull, const Span &part, uint32_t epoch) const {
        const uint32_t quorum = mode(epoch).quorum;
        const uint64_t from = epochs_[epoch].from;
        uint64_t all = 0, most = 0;
        std::map<uint64_t, uint64_t> of_step;
        for (uint32_t worker = 0; worker < workers_; ++worker) {
            uint64_t mine = 0;
            for (uint64_t clock = 0; clock < most_clocks; ++clock) {
                const Record *push = push_of(worker, clock);
                if (push == nullptr || push->epoch != epoch) continue;
                uint64_t yes = 0, no = 0;
                for (uint64_t e = part.first; e < part.end(); ++e)
                    if (whose_.worker(e) == worker && whose_.in(e, clock))
                        ++((pull.received[e] >> 4 * clock & 15) > 0 ? yes : no);
                if (yes > 0 && no > 0) return "a contribution was applied in part";
                mine += yes > 0;
                if (yes > 0) ++of_step[push->step];
            }
            if (part.count < whose_.elements()) return ""; // not every worker has one here
            all += mine;
            most = std::max(most, mine);
        }
        const uint64_t steps = all / quorum;
        const bool now = epoch == pull.epoch; // else some may have been dropped by the change
        auto wrong = [&](const auto &step) {
            return step.first != unknown &&
                   (step.second != quorum || step.first < from || step.first - from >= steps);
        };
        bool exact = std::none_of(of_step.begin(), of_step.end(), wrong) && all % quorum == 0 &&
                     most <= steps;
        if (now && pull.pull_step != unknown) exact &= steps + from >= pull.pull_step;
        if (epochs_.size() == 1) exact &= steps >= pull.pull_clock && steps >= pull.version;
        if (exact) return "";
        char text[200];
        std::snprintf(text, sizeof text,
                      "worker %u's pull at clock %llu, version %llu, saw %llu contributions, %llu "
                      "of one worker; the quorum is %u",
                      pull.worker, ull(pull.pull_clock), ull(pull.version), ull(all), ull(most),
                      quorum);
        return text;
    }

    // How many pushes of that clock to the element a pull must and may have seen.
    Bounds allowed(const Record &pull, uint64_t element, uint64_t clock) const {
        Bounds bounds;
        bool quorum = false; // they were pushed under it
        for (const Record *push : history_) {
            bool covers = push->pushes() && push->worker == element % workers_ &&
                          push->clock == clock && element >= push->range.first &&
                          element < push->range.end();
            if (!covers) continue;
            const bool earlier = push->epoch < pull.epoch;
            const Definition &its = mode(earlier ? push->epoch : pull.epoch);
            bool bsp = its.consistency == DTRAIN_BSP, ssp = its.consistency == DTRAIN_SSP;
            quorum |= its.consistency == DTRAIN_QUORUM;
            bool over = earlier || (bsp && push->step < pull.pull_step) ||
                        (ssp && push->step + its.staleness < pull.pull_step);
            bool certain = push->status == 0 && push->finished != INT64_MAX;
            bool before = certain && push->finished < pull.started;
            bounds.most += bsp ? over : push->started <= pull.finished;
            // One that failed or never ended may or may not have been applied.
            bool failed = push->status != 0;
            bounds.least += earlier ? certain : !failed && (over || (!bsp && (quorum || before)));
        }
        if (quorum && !may_have_ended(pull, static_cast<uint32_t>(element % workers_), clock))
            return {};
        if (quorum && bounds.most > 0) bounds.may_be_none = true;
        return bounds;
    }

    std::string check_element(const Record &pull, uint64_t element, uint64_t value) const {
        for (uint64_t clock = 0; clock < most_clocks; ++clock) {
            if (!whose_.in(element, clock)) continue;
            uint64_t seen = value >> 4 * clock & 15;
            Bounds bounds = allowed(pull, element, clock);
            if (seen >= bounds.least && seen <= bounds.most) continue;
            if (seen == 0 && bounds.may_be_none) continue;
            char text[256];
            std::snprintf(text, sizeof text,
                          "worker %u's pull at clock %llu saw %llu pushes of worker %u's clock "
                          "%llu to element %llu, not %llu to %llu",
                          pull.worker, ull(pull.pull_clock), ull(seen),
                          static_cast<uint32_t>(element % workers_), ull(clock), ull(element),
                          ull(bounds.least), ull(bounds.most));
            return text;
        }
        return "";
    }
    static unsigned long long ull(uint64_t value) { return value; }

    const std::vector<const Record *> &history_;
    uint32_t workers_;
    Whose whose_;
    std::vector<Epoch> epochs_;
    Steps steps_;
};
