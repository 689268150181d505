// FTRL-proximal. McMahan et al.: Ad click prediction: a view from the trenches, KDD 2013.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

#include "ps/rules/kernel_loop.h"
#include "ps/rules/loops/ftrl.h"

namespace dtrain::ps {

DTRAIN_KERNEL(ftrl)

extern const RuleInfo ftrl_rule = {
    .name = "ftrl",
    .formula = "`z = z + g - w (sqrt(n + g^2) - sqrt(n)) / lr`; `n = n + g^2`; `w = 0` "
               "where `abs(z) <= l1`, else "
               "`-(z - sign(z) l1) / ((beta + sqrt(n)) / lr + l2)`",
    .source = "McMahan et al. 2013",
    .flags = float_optimizer | RuleInfo::own_proximal,
    .slots = {"z", "n"},
    .accumulator = 1,
    .update = &ftrl_kernels,
    .takes = takes_rate | DTRAIN_GIVEN_FTRL_BETA | takes_accumulator,
};

} // namespace dtrain::ps
