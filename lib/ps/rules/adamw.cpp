// Adam with decoupled weight decay. Loshchilov, Hutter: Decoupled weight decay regularization,
// ICLR 2019.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

#include "ps/rules/adam.h"

namespace dtrain::ps {
namespace {

DTRAIN_LOOP(adamw) {
    const Adam<T> k(s);
    const T shrink = static_cast<T>(s.rate * s.own_decay);
    for (uint64_t i = 0; i < count; ++i) {
        a[i] = k.beta1 * a[i] + k.rest1 * g[i];
        b[i] = k.beta2 * b[i] + k.rest2 * g[i] * g[i];
        w[i] -= shrink * w[i] + k.rate * a[i] / (root(b[i] * k.second) + k.epsilon);
    }
}

} // namespace

DTRAIN_KERNEL(adamw)

extern const RuleInfo adamw_rule = {
    .name = "adamw",
    .formula = "as `ADAM`, followed by `w = w - lr decay w`",
    .source = "Loshchilov and Hutter 2019",
    .flags = float_optimizer | RuleInfo::counts_steps | RuleInfo::own_decay,
    .slots = {"moment1", "moment2"},
    .update = &adamw_kernels,
    .takes = takes_moments,
};

} // namespace dtrain::ps
