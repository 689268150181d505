// Nesterov's momentum. Sutskever et al.: On the importance of initialization and momentum in
// deep learning, ICML 2013.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

#include "ps/rules/kernel_loop.h"

namespace dtrain::ps {
namespace {

DTRAIN_LOOP(nesterov) {
    const T rate = static_cast<T>(s.rate), mu = static_cast<T>(s.momentum);
    for (uint64_t i = 0; i < count; ++i) {
        a[i] = mu * a[i] + g[i];
        w[i] -= rate * (g[i] + mu * a[i]);
    }
}

} // namespace

DTRAIN_KERNEL(nesterov)

extern const RuleInfo nesterov_rule = {
    .name = "nesterov",
    .formula = "`v = mu v + g`; `w = w - lr (g + mu v)`",
    .source = "Sutskever et al. 2013",
    .flags = float_optimizer,
    .slots = {"momentum"},
    .update = &nesterov_kernels,
    .takes = takes_momentum,
};

} // namespace dtrain::ps
