// The formulas of the learning-rate schedules.
// SPDX-License-Identifier: Apache-2.0
#include "ps/optimizer/learning_rate.h"

#include "base/elementary.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace dtrain::ps {
namespace {

// The factor s updates after the first one at the full rate; n: decay_steps, d: decay.
using Factor = double (*)(uint64_t s, uint64_t n, double d);

double constant(uint64_t, uint64_t, double) { return 1; }

double linear(uint64_t s, uint64_t n, double d) {
    return s < n ? 1 + (d - 1) * (double(s) / double(n)) : d;
}

double cosine(uint64_t s, uint64_t n, double d) {
    if (s >= n) return d;
    return d + (1 - d) * (1 + cosine_of_turn(double(s) / double(n) / 2)) / 2;
}

double staircase(uint64_t s, uint64_t n, double d) { return whole_power(d, s / n); }

double exponential(uint64_t s, uint64_t n, double d) {
    const double part = double(s % n) / double(n);
    return staircase(s, n, d) * dtrain::exponential(part * logarithm(d));
}

double inverse_sqrt(uint64_t s, uint64_t n, double) {
    return std::sqrt(double(n) / (double(n) + double(s)));
}

// Indexed by DTRAIN_SCHEDULE_*.
constexpr Factor factors[] = {nullptr,     constant,  linear,      cosine,
                              exponential, staircase, inverse_sqrt};
static_assert(std::size(factors) == DTRAIN_SCHEDULE_INVERSE_SQRT + 1);

} // namespace

LearningRate::LearningRate(const TableParams &p)
    : rate_(p.learning_rate), varies_(is_scheduled(p)), schedule_(p.schedule),
      warmup_(p.warmup_steps), steps_(p.decay_steps), decay_(p.decay) {}

double LearningRate::factor(uint64_t t) const {
    if (t < warmup_) return double(t) / double(warmup_);
    return factors[schedule_](t - std::max<uint64_t>(warmup_, 1), steps_, decay_);
}

} // namespace dtrain::ps
