// Adagrad. Duchi, Hazan, Singer: Adaptive subgradient methods for online learning and stochastic
// optimization, JMLR 2011.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

#include "ps/rules/kernel_loop.h"
#include "ps/rules/loops/adagrad.h"

namespace dtrain::ps {

DTRAIN_KERNEL(adagrad)

extern const RuleInfo adagrad_rule = {
    .name = "adagrad",
    .formula = "`a = a + g^2`; `w = w - lr g / (sqrt(a) + eps)`",
    .source = "Duchi et al. 2011",
    .flags = float_optimizer,
    .slots = {"sum"},
    .accumulator = 0,
    .update = &adagrad_kernels,
    .takes = takes_epsilon | takes_accumulator,
};

} // namespace dtrain::ps
