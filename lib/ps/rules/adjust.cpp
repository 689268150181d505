// The kernels that run before and after a rule: clipping, weight decay, the proximal step.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/kernels.h"

#include "ps/rules/kernel_loop.h"
#include "ps/rules/loops/adjust.h"

namespace dtrain::ps {

DTRAIN_KERNEL(adjust)
DTRAIN_KERNEL(proximal)

} // namespace dtrain::ps
