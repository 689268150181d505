// SGD with momentum. Polyak: Some methods of speeding up the convergence of iteration methods,
// 1964.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

#include "ps/rules/kernel_loop.h"
#include "ps/rules/loops/momentum.h"

namespace dtrain::ps {

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
