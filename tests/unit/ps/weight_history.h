// Whether weighted averages fit their definition.
// SPDX-License-Identifier: Apache-2.0
//
// Tables are f64 with rule ADD and DTRAIN_AVG. Element e belongs to worker e % workers and to its
// clock e / workers % clocks: a push in that clock adds 1 there, and 0 elsewhere. So the element is
// how often the worker has pushed it, times its weight, divided by what all who took part counted:
// their weights, or where nobody has said one, their number. Means over pushers are divided by what
// those counted whose pushes carried the element.
#pragma once
#include "history.h"

#include <bit>
#include <cmath>
#include <set>

class WeightChecker {
  public:
    WeightChecker(const std::vector<const Record *> &history, uint32_t workers, uint32_t clocks,
                  Definition mode, const Steps &steps, bool over_pushers)
        : history_(history), workers_(workers), clocks_(clocks), mode_(mode), steps_(steps),
          over_pushers_(over_pushers) {}

    // Of BSP and QUORUM. "" when every finished pull fits the definition, else what does not.
    std::string check() const {
        for (const Record *pull : history_) {
            if (!pull->pulls() || pull->status != 0 || pull->finished == INT64_MAX) continue;
            if (mode_.quorum == 0) {
                std::string error = check_part(*pull, pull->range);
                if (!error.empty()) return error;
                continue;
            }
            const bool whole = !steps_.parts.empty() && pull->range.first == 0 &&
                               pull->range.count == steps_.parts.back().end();
            if (!whole || pull->finished >= steps_.until) continue;
            for (const Span &part : steps_.parts) {
                std::string error = check_part(*pull, part);
                if (!error.empty()) return error;
            }
        }
        return "";
    }

  private:
    struct Counts { // what a worker does in a clock
        double weight = 0;
        bool pushed = false;
        uint64_t step = unknown;
        double counted() const { return weight > 0 ? weight : pushed ? 1 : 0; }
    };
    Counts counts(uint32_t worker, uint64_t clock) const {
        Counts its;
        for (const Record *record : history_) {
            if (record->worker != worker || record->clock != clock) continue;
            if (record->pushes() || record->clocks()) its.step = record->step;
            if (!record->pushes()) continue;
            its.pushed = true;
            its.weight = record->weight;
        }
        return its;
    }
    const Record *end_of(uint32_t worker, uint64_t clock) const {
        for (const Record *end : history_)
            if (end->clocks() && end->worker == worker && end->clock == clock) return end;
        return nullptr;
    }
    uint32_t worker_of(uint64_t element) const { return uint32_t(element % workers_); }
    uint64_t clock_of(uint64_t element) const { return element / workers_ % clocks_; }
    static double value(const Record &pull, uint64_t element) {
        return std::bit_cast<double>(pull.received[element - pull.range.first]);
    }

    // Those whose clock was that step, as far as the pull tells.
    using Group = std::set<std::pair<uint32_t, uint64_t>>; // worker, clock
    std::map<uint64_t, Group> groups(const Record &pull, const Span &part) const {
        std::map<uint64_t, Group> of_step;
        if (mode_.quorum > 0) {
            for (uint64_t e = part.first; e < part.end(); ++e)
                if (const uint32_t w = worker_of(e); value(pull, e) != 0)
                    of_step[counts(w, clock_of(e)).step].insert({w, clock_of(e)});
            return of_step;
        }
        for (uint32_t w = 0; w < workers_; ++w)
            for (uint64_t k = 0; k < clocks_ && k < pull.pull_clock; ++k)
                if (end_of(w, k) != nullptr) of_step[k].insert({w, k});
        return of_step;
    }

    // What a step's sum is divided by; nothing: nobody knows.
    using Divisors = std::vector<double>;
    Divisors divisors_of_all(const Group &group) const {
        double sum = 0;
        bool said = false;
        for (const auto &[worker, clock] : group) {
            const Counts its = counts(worker, clock);
            const Record *end = end_of(worker, clock);
            if (end != nullptr && end->status != 0) return {}; // it may have left before
            sum += its.counted();
            said |= its.weight > 0;
        }
        return {said ? sum : double(group.size())};
    }
    // One of these: pushes that failed may have carried the element.
    Divisors divisors_of_pushers(const Group &group, uint64_t e) const {
        Divisors sums = {0};
        for (const auto &[worker, clock] : group) {
            bool surely = false, perhaps = false;
            for (const Record *push : history_) {
                if (!push->pushes() || push->worker != worker || push->clock != clock) continue;
                perhaps |= push->carries(e);
                surely |= push->carries(e) && push->status == 0;
            }
            const double its = perhaps ? counts(worker, clock).counted() : 0;
            for (size_t i = sums.size(); i-- > 0;) {
                if (perhaps && !surely) sums.push_back(sums[i]);
                sums[i] += its;
            }
        }
        return sums;
    }

    std::string check_part(const Record &pull, const Span &part) const {
        const std::map<uint64_t, Group> of_step = groups(pull, part);
        std::map<std::pair<uint32_t, uint64_t>, const Group *> groups; // of those who took part
        std::map<const Group *, Divisors> of_all;
        for (const auto &[step, group] : of_step) {
            if (mode_.quorum > 0 && group.size() != mode_.quorum)
                return "a step of " + std::to_string(group.size()) + " workers";
            for (const auto &one : group) groups[one] = &group;
            of_all[&group] = divisors_of_all(group);
        }
        for (uint64_t e = part.first; e < part.end(); ++e) {
            const auto its = groups.find({worker_of(e), clock_of(e)});
            const Divisors divisors = its == groups.end() ? Divisors{0} // not in the values
                                      : over_pushers_     ? divisors_of_pushers(*its->second, e)
                                                          : of_all[its->second];
            std::string error;
            for (const double divisor : divisors) {
                error = check_element(pull, e, divisor);
                if (error.empty()) break;
            }
            if (!error.empty()) return error;
        }
        return "";
    }

    std::string check_element(const Record &pull, uint64_t e, double divisor) const {
        uint64_t least = 0, most = 0; // one that failed may or may not have been applied
        for (const Record *push : history_) {
            if (!push->pushes() || push->worker != worker_of(e) || push->clock != clock_of(e) ||
                !push->carries(e))
                continue;
            ++most;
            least += push->status == 0;
        }
        const double weight = counts(worker_of(e), clock_of(e)).weight;
        const double pushes = value(pull, e) * divisor / (weight > 0 ? weight : 1);
        const double whole = std::round(pushes);
        const bool none = divisor == 0 && value(pull, e) == 0;
        if (none || (divisor > 0 && std::fabs(pushes - whole) < 1e-9 * (whole + 1) &&
                     whole >= double(least) && whole <= double(most)))
            return "";
        char text[200];
        std::snprintf(text, sizeof text,
                      "worker %u's pull at clock %llu: element %llu, of worker %u's clock %llu, is "
                      "%g: its weight is %g, the step's counted %g",
                      pull.worker, ull(pull.pull_clock), ull(e), worker_of(e), ull(clock_of(e)),
                      value(pull, e), weight, divisor);
        return text;
    }
    static unsigned long long ull(uint64_t value) { return value; }

    const std::vector<const Record *> &history_;
    uint32_t workers_, clocks_;
    Definition mode_;
    Steps steps_;
    bool over_pushers_;
};
