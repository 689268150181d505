// Nesterov's momentum. Sutskever et al.: On the importance of initialization and momentum in
// deep learning, ICML 2013.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

#include "ps/rules/kernel_loop.h"
#include "ps/rules/loops/nesterov.h"

namespace dtrain::ps {

DTRAIN_KERNEL(nesterov)

extern const RuleInfo nesterov_rule = {
    .name = "nesterov",
    .formula = "`v = mu v + g`; `w = w - lr (g + mu v)`",
    .source = "Sutskever et al. 2013",
    .flags = float_optimizer,
    .slots = {"momentum"},
    .update = &nesterov_kernels,
    .takes = takes_momentum,
};

} // namespace dtrain::ps
