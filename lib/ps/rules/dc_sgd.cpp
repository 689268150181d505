// Delay-compensated SGD. Zheng et al.: Asynchronous stochastic gradient descent with delay
// compensation, ICML 2017.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

#include "ps/rules/kernel_loop.h"

namespace dtrain::ps {
namespace {

DTRAIN_LOOP(dc_sgd) {
    const T rate = static_cast<T>(s.rate), lambda = static_cast<T>(s.compensation);
    for (uint64_t i = 0; i < count; ++i)
        w[i] -= rate * (g[i] + lambda * g[i] * g[i] * (w[i] - a[i]));
}

} // namespace

DTRAIN_KERNEL(dc_sgd)

extern const RuleInfo dc_sgd_rule = {
    .name = "dc_sgd",
    .formula =
        "`w = w - lr (g + lambda g^2 (w - p))`, where `p` is the value that the worker pulled",
    .source = "Zheng et al. 2017",
    .flags = float_optimizer | RuleInfo::backs_up,
    .update = &dc_sgd_kernels,
    .takes = takes_rate | DTRAIN_GIVEN_COMPENSATION,
};

} // namespace dtrain::ps
