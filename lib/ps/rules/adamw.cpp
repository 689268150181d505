// Adam with decoupled weight decay. Loshchilov, Hutter: Decoupled weight decay regularization,
// ICLR 2019.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

#include "ps/rules/kernel_loop.h"
#include "ps/rules/loops/adamw.h"

namespace dtrain::ps {

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
