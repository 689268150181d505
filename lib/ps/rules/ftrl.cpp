// FTRL-proximal. McMahan et al.: Ad click prediction: a view from the trenches, KDD 2013.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

#include "ps/rules/kernel_loop.h"

namespace dtrain::ps {
namespace {

DTRAIN_LOOP(ftrl) { // a: z, b: n; a NaN stays NaN
    const T inverse = static_cast<T>(1 / s.rate), l1 = static_cast<T>(s.l1),
            fixed = static_cast<T>(s.ftrl_beta / s.rate + s.l2);
    for (uint64_t i = 0; i < count; ++i) {
        const T before = root(b[i]);
        b[i] += g[i] * g[i];
        const T after = root(b[i]);
        a[i] += g[i] - (after - before) * inverse * w[i];
        const T beyond = a[i] > l1 ? a[i] - l1 : (a[i] < -l1 ? a[i] + l1 : a[i] - a[i]);
        w[i] = -beyond / (after * inverse + fixed);
    }
}

} // namespace

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
