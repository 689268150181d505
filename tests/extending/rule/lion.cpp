// Lion: the sign of an interpolation between momentum and gradient. Chen et al.: Symbolic discovery
// of optimization algorithms, NeurIPS 2023.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

#include "ps/rules/kernel_loop.h"

namespace dtrain::ps {
namespace {

DTRAIN_LOOP(lion) { // a: momentum; a NaN stays NaN
    const T rate = static_cast<T>(s.rate), decay = static_cast<T>(s.own_decay),
            beta1 = static_cast<T>(s.beta1), rest1 = static_cast<T>(1 - s.beta1),
            beta2 = static_cast<T>(s.beta2), rest2 = static_cast<T>(1 - s.beta2);
    for (uint64_t i = 0; i < count; ++i) {
        const T mixed = beta1 * a[i] + rest1 * g[i];
        const T sign = mixed > 0 ? T(1) : (mixed < 0 ? T(-1) : mixed);
        w[i] -= rate * (sign + decay * w[i]);
        a[i] = beta2 * a[i] + rest2 * g[i];
    }
}

} // namespace

DTRAIN_KERNEL(lion)

extern const RuleInfo lion_rule = {
    .name = "lion",
    .formula = "`w = w - lr (sign(b1 m + (1-b1) g) + decay w)`; `m = b2 m + (1-b2) g`",
    .source = "Chen et al. 2023",
    .flags = float_optimizer | RuleInfo::own_decay,
    .slots = {"momentum"},
    .update = &lion_kernels,
    .rate = 1e-4,
    .beta2 = 0.99,
    .takes = takes_betas,
};

} // namespace dtrain::ps
