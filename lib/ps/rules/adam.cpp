// Adam. Kingma, Ba: Adam: a method for stochastic optimization, ICLR 2015.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

#include "ps/rules/kernel_loop.h"
#include "ps/rules/loops/adam.h"

namespace dtrain::ps {

DTRAIN_KERNEL(adam)

extern const RuleInfo adam_rule = {
    .name = "adam",
    .formula = "`t = t + 1`; `m = b1 m + (1-b1) g`; `v = b2 v + (1-b2) g^2`; "
               "`w = w - lr (m / (1-b1^t)) / (sqrt(v / (1-b2^t)) + eps)`",
    .source = "Kingma and Ba 2015",
    .flags = float_optimizer | RuleInfo::counts_steps,
    .slots = {"moment1", "moment2"},
    .update = &adam_kernels,
    .takes = takes_moments,
};

} // namespace dtrain::ps
