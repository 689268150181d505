// What workers did to a table and saw of it, and whether that fits a consistency mode's definition.
// SPDX-License-Identifier: Apache-2.0
//
// Tables are u64 with rule ADD. Element e belongs to worker e % workers: a push at clock k adds
// 16^k to the elements of its range that belong to the pusher and 0 to the others, so hexadecimal
// digit k of an element counts the pushes of its worker at clock k that were applied.
#pragma once
#include "ps/partition.h"
#include "ps/protocol.h"

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

constexpr uint32_t most_clocks = 16, most_pushes = 15; // of one element in one clock

struct Record {
    uint32_t worker = 0;
    dtrain::ps::RequestKind kind = {}; // push, pull, push_pull
    uint64_t clock = 0;                // of the push; of the pull where there is no push
    uint64_t pull_clock = 0;
    dtrain::ps::Range range;
    int64_t started = 0, finished = INT64_MAX;
    dtrain::Status status = 0;
    std::vector<uint64_t> sent, received;

    bool pushes() const { return kind != dtrain::ps::RequestKind::pull; }
    bool pulls() const { return kind != dtrain::ps::RequestKind::push; }
};

struct Definition {
    uint32_t consistency = 0, staleness = 0;
};

class HistoryChecker {
  public:
    HistoryChecker(const std::vector<const Record *> &history, uint32_t workers, Definition mode)
        : history_(history), workers_(workers), mode_(mode) {}

    // "" when every finished pull fits the definition, else what does not.
    std::string check() const {
        for (const Record *pull : history_) {
            if (!pull->pulls() || pull->status != 0 || pull->finished == INT64_MAX) continue;
            for (uint64_t i = 0; i < pull->range.count; ++i) {
                std::string error = check_element(*pull, pull->range.first + i, pull->received[i]);
                if (!error.empty()) return error;
            }
        }
        return "";
    }

  private:
    struct Bounds {
        uint64_t least = 0, most = 0;
    };

    // How many pushes of that clock to the element a pull must and may have seen.
    Bounds allowed(const Record &pull, uint64_t element, uint64_t clock) const {
        Bounds bounds;
        bool bsp = mode_.consistency == DTRAIN_BSP, ssp = mode_.consistency == DTRAIN_SSP;
        bool over =
            (bsp && clock < pull.pull_clock) || (ssp && clock + mode_.staleness < pull.pull_clock);
        for (const Record *push : history_) {
            bool covers = push->pushes() && push->worker == element % workers_ &&
                          push->clock == clock && element >= push->range.first &&
                          element < push->range.end();
            if (!covers) continue;
            bool certain = push->status == 0 && push->finished != INT64_MAX;
            bool before = certain && push->finished < pull.started;
            bounds.most += bsp ? over : push->started <= pull.finished;
            // One that failed or never ended may or may not have been applied.
            bool failed = push->status != 0;
            bounds.least += !failed && (over || (!bsp && before));
        }
        return bounds;
    }

    std::string check_element(const Record &pull, uint64_t element, uint64_t value) const {
        for (uint64_t clock = 0; clock < most_clocks; ++clock) {
            uint64_t seen = value >> 4 * clock & 15;
            Bounds bounds = allowed(pull, element, clock);
            if (seen >= bounds.least && seen <= bounds.most) continue;
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
    Definition mode_;
};
