// RMSProp. Tieleman, Hinton: Lecture 6.5, Coursera, 2012.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

#include "ps/rules/kernel_loop.h"

namespace dtrain::ps {
namespace {

DTRAIN_LOOP(rmsprop) {
    const T rate = static_cast<T>(s.rate), epsilon = static_cast<T>(s.epsilon),
            rho = static_cast<T>(s.rho), rest = static_cast<T>(1 - s.rho);
    for (uint64_t i = 0; i < count; ++i) {
        a[i] = rho * a[i] + rest * g[i] * g[i];
        w[i] -= rate * g[i] / (root(a[i]) + epsilon);
    }
}

} // namespace

DTRAIN_KERNEL(rmsprop)

extern const RuleInfo rmsprop_rule = {
    .name = "rmsprop",
    .formula = "`a = rho a + (1-rho) g^2`; `w = w - lr g / (sqrt(a) + eps)`",
    .source = "Tieleman and Hinton 2012",
    .flags = float_optimizer,
    .slots = {"square"},
    .accumulator = 0,
    .update = &rmsprop_kernels,
    .takes = takes_rho | takes_accumulator,
};

} // namespace dtrain::ps
