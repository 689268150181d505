// LAMB. You et al.: Large batch optimization for deep learning: training BERT in 76 minutes,
// ICLR 2020.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

#include "ps/rules/kernel_loop.h"
#include "ps/rules/loops/lamb.h"

namespace dtrain::ps {

DTRAIN_KERNEL(lamb_direction)
DTRAIN_KERNEL(lamb)

extern const RuleInfo lamb_rule = {
    .name = "lamb",
    .formula = "`u = (m / (1-b1^t)) / (sqrt(v / (1-b2^t)) + eps) + decay w`; "
               "`w = w - lr u \\|w\\| / \\|u\\|`, with `m`, `v` and `t` as `ADAM`",
    .source = "You et al. 2020",
    .flags = float_optimizer | RuleInfo::counts_rows | RuleInfo::own_decay,
    .slots = {"moment1", "moment2"},
    .update = &lamb_kernels,
    .direction = &lamb_direction_kernels,
    .ratio = lamb_ratio,
    .epsilon = 1e-6,
    .takes = takes_moments,
};

} // namespace dtrain::ps
