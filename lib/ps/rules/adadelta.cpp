// Adadelta. Zeiler: ADADELTA: an adaptive learning rate method, 2012.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

#include "ps/rules/kernel_loop.h"
#include "ps/rules/loops/adadelta.h"

namespace dtrain::ps {

DTRAIN_KERNEL(adadelta)

extern const RuleInfo adadelta_rule = {
    .name = "adadelta",
    .formula = "`a = rho a + (1-rho) g^2`; `d = g sqrt(b + eps) / sqrt(a + eps)`; "
               "`b = rho b + (1-rho) d^2`; `w = w - lr d`",
    .source = "Zeiler 2012",
    .flags = float_optimizer,
    .slots = {"square", "delta"},
    .accumulator = 0,
    .update = &adadelta_kernels,
    .rate = 1,
    .epsilon = 1e-6,
    .takes = takes_rho | takes_accumulator,
};

} // namespace dtrain::ps
