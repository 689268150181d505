// The mean of all pushes of an element so far.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

#include "ps/rules/kernel_loop.h"

namespace dtrain::ps {
namespace {

DTRAIN_LOOP(mean) {
    const T share = static_cast<T>(s.share);
    for (uint64_t i = 0; i < count; ++i) w[i] += share * (g[i] - w[i]);
}

} // namespace

DTRAIN_KERNEL(mean)

extern const RuleInfo mean_rule = {
    .name = "mean",
    .formula = "`t = t + 1`; `w = w + (g - w) / t`",
    .flags = RuleInfo::floats | RuleInfo::counts_steps | RuleInfo::own_steps,
    .update = &mean_kernels,
};

} // namespace dtrain::ps
