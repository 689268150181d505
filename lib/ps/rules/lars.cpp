// LARS. You, Gitman, Ginsburg: Large batch training of convolutional networks, 2017.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

#include <cmath>

#include "ps/rules/kernel_loop.h"

namespace dtrain::ps {
namespace {

// A row whose norm is 0 moves at the plain rate, so that rows of zeros can change.
double ratio_of_norms(const Step &s, const Norms &norms, uint64_t, double &) {
    if (norms.values == 0 || norms.direction == 0) return 1;
    double values = std::sqrt(norms.values);
    return s.trust * values / (std::sqrt(norms.direction) + s.own_decay * values);
}

DTRAIN_LOOP(lars) {
    const T rate = static_cast<T>(s.rate * s.ratio), mu = static_cast<T>(s.momentum),
            decay = static_cast<T>(s.own_decay);
    for (uint64_t i = 0; i < count; ++i) {
        a[i] = mu * a[i] + rate * (g[i] + decay * w[i]);
        w[i] -= a[i];
    }
}

} // namespace

DTRAIN_KERNEL(lars)

extern const RuleInfo lars_rule = {
    .name = "lars",
    .formula = "`r = trust \\|w\\| / (\\|g\\| + decay \\|w\\|)`; `v = mu v + lr r (g + decay w)`; "
               "`w = w - v`",
    .source = "You et al. 2017",
    .flags = float_optimizer | RuleInfo::own_decay,
    .slots = {"momentum"},
    .update = &lars_kernels,
    .ratio = ratio_of_norms,
    .takes = takes_momentum | DTRAIN_GIVEN_TRUST,
};

} // namespace dtrain::ps
