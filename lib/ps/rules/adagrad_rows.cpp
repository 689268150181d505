// Adagrad with one sum for each row, as in PyTorch-BigGraph. Lerer et al., SysML 2019.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

#include "ps/rules/kernel_loop.h"
#include "ps/rules/loops/adagrad_rows.h"

namespace dtrain::ps {

extern const RuleInfo adagrad_rows_rule = {
    .name = "adagrad_rows",
    .formula = "`a = a + mean of the row's g^2`; `w = w - lr g / (sqrt(a) + eps)`",
    .source = "as PyTorch-BigGraph: Lerer et al. 2019",
    .flags = float_optimizer | RuleInfo::row_state,
    .slots = {"sum"},
    .accumulator = 0,
    .update = &sgd_kernels,
    .ratio = adagrad_rows_ratio,
    .takes = takes_epsilon | takes_accumulator,
};

} // namespace dtrain::ps
