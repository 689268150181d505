// LAMB. You et al.: Large batch optimization for deep learning: training BERT in 76 minutes,
// ICLR 2020.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

#include <cmath>

#include "ps/rules/adam.h"

namespace dtrain::ps {
namespace {

double ratio_of_norms(const Step &, const Norms &norms, uint64_t, double &) {
    if (norms.values == 0 || norms.direction == 0) return 1;
    return std::sqrt(norms.values / norms.direction);
}

DTRAIN_LOOP(lamb_direction) {
    const Adam<T> k(s);
    const T decay = static_cast<T>(s.own_decay);
    for (uint64_t i = 0; i < count; ++i) {
        a[i] = k.beta1 * a[i] + k.rest1 * g[i];
        b[i] = k.beta2 * b[i] + k.rest2 * g[i] * g[i];
        c[i] = k.first * a[i] / (root(b[i] * k.second) + k.epsilon) + decay * w[i];
    }
}

DTRAIN_LOOP(lamb) { // computes the direction again, which is cheaper than storing it
    const Adam<T> k(s);
    const T decay = static_cast<T>(s.own_decay), rate = static_cast<T>(s.rate * s.ratio);
    for (uint64_t i = 0; i < count; ++i)
        w[i] -= rate * (k.first * a[i] / (root(b[i] * k.second) + k.epsilon) + decay * w[i]);
}

} // namespace

DTRAIN_KERNEL(lamb_direction)
DTRAIN_KERNEL(lamb)

extern const RuleInfo lamb_rule = {
    .name = "lamb",
    .formula = "`u = (m / (1-b1^t)) / (sqrt(v / (1-b2^t)) + eps) + decay w`; "
               "`w = w - lr u \\|w\\| / \\|u\\|`, with `m`, `v` and `t` as `ADAM`",
    .source = "You et al. 2020",
    .flags = float_optimizer | RuleInfo::counts_rows | RuleInfo::own_decay,
    .slots = {"moment1", "moment2"},
    .update = &lamb_kernels,
    .direction = &lamb_direction_kernels,
    .ratio = ratio_of_norms,
    .epsilon = 1e-6,
    .takes = takes_moments,
};

} // namespace dtrain::ps
