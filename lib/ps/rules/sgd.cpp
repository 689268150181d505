// Stochastic gradient descent.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

#include "ps/rules/kernel_loop.h"

namespace dtrain::ps {
namespace {

DTRAIN_LOOP(sgd) {
    const T rate = static_cast<T>(s.rate * s.ratio);
    for (uint64_t i = 0; i < count; ++i) w[i] -= rate * g[i];
}

} // namespace

DTRAIN_KERNEL(sgd)

extern const RuleInfo sgd_rule = {
    .name = "sgd",
    .formula = "`w = w - lr g`",
    .flags = float_optimizer,
    .update = &sgd_kernels,
    .takes = takes_rate,
};

} // namespace dtrain::ps
