// Stochastic gradient descent.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

#include "ps/rules/kernel_loop.h"
#include "ps/rules/loops/sgd.h"

namespace dtrain::ps {

DTRAIN_KERNEL(sgd)

extern const RuleInfo sgd_rule = {
    .name = "sgd",
    .formula = "`w = w - lr g`",
    .flags = float_optimizer,
    .update = &sgd_kernels,
    .takes = takes_rate,
};

} // namespace dtrain::ps
