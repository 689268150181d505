// AMSGrad. Reddi, Kale, Kumar: On the convergence of Adam and beyond, ICLR 2018.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

#include "ps/rules/kernel_loop.h"
#include "ps/rules/loops/amsgrad.h"

namespace dtrain::ps {

DTRAIN_KERNEL(amsgrad)

extern const RuleInfo amsgrad_rule = {
    .name = "amsgrad",
    .formula = "as `ADAM` with `max(v of all steps)` in place of `v`",
    .source = "Reddi et al. 2018",
    .flags = float_optimizer | RuleInfo::counts_steps,
    .slots = {"moment1", "moment2", "greatest"},
    .update = &amsgrad_kernels,
    .takes = takes_moments,
};

} // namespace dtrain::ps
