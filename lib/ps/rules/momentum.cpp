// SGD with momentum. Polyak: Some methods of speeding up the convergence of iteration methods,
// 1964.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

#include "ps/rules/kernel_loop.h"

namespace dtrain::ps {
namespace {

DTRAIN_LOOP(momentum) {
    const T rate = static_cast<T>(s.rate), mu = static_cast<T>(s.momentum);
    for (uint64_t i = 0; i < count; ++i) {
        a[i] = mu * a[i] + g[i];
        w[i] -= rate * a[i];
    }
}

} // namespace

DTRAIN_KERNEL(momentum)

extern const RuleInfo momentum_rule = {
    .name = "momentum",
    .formula = "`v = mu v + g`; `w = w - lr v`",
    .source = "Polyak 1964",
    .flags = float_optimizer,
    .slots = {"momentum"},
    .update = &momentum_kernels,
    .takes = takes_momentum,
};

} // namespace dtrain::ps
