// RMSProp. Tieleman, Hinton: Lecture 6.5, Coursera, 2012.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

#include "ps/rules/kernel_loop.h"
#include "ps/rules/loops/rmsprop.h"

namespace dtrain::ps {

DTRAIN_KERNEL(rmsprop)

extern const RuleInfo rmsprop_rule = {
    .name = "rmsprop",
    .formula = "`a = rho a + (1-rho) g^2`; `w = w - lr g / (sqrt(a) + eps)`",
    .source = "Tieleman and Hinton 2012",
    .flags = float_optimizer,
    .slots = {"square"},
    .accumulator = 0,
    .update = &rmsprop_kernels,
    .takes = takes_rho | takes_accumulator,
};

} // namespace dtrain::ps
