// LARS. You, Gitman, Ginsburg: Large batch training of convolutional networks, 2017.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

#include "ps/rules/kernel_loop.h"
#include "ps/rules/loops/lars.h"

namespace dtrain::ps {

DTRAIN_KERNEL(lars)

extern const RuleInfo lars_rule = {
    .name = "lars",
    .formula = "`r = trust \\|w\\| / (\\|g\\| + decay \\|w\\|)`; `v = mu v + lr r (g + decay w)`; "
               "`w = w - v`",
    .source = "You et al. 2017",
    .flags = float_optimizer | RuleInfo::own_decay,
    .slots = {"momentum"},
    .update = &lars_kernels,
    .ratio = lars_ratio,
    .takes = takes_momentum | DTRAIN_GIVEN_TRUST,
};

} // namespace dtrain::ps
