// The mean of all pushes of an element so far.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

#include "ps/rules/kernel_loop.h"
#include "ps/rules/loops/mean.h"

namespace dtrain::ps {

DTRAIN_KERNEL(mean)

extern const RuleInfo mean_rule = {
    .name = "mean",
    .formula = "`t = t + 1`; `w = w + (g - w) / t`",
    .flags = RuleInfo::floats | RuleInfo::counts_steps | RuleInfo::own_steps,
    .update = &mean_kernels,
};

} // namespace dtrain::ps
