// AMSGrad. Reddi, Kale, Kumar: On the convergence of Adam and beyond, ICLR 2018.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

#include "ps/rules/adam.h"

namespace dtrain::ps {
namespace {

DTRAIN_LOOP(amsgrad) { // c: the maximum of the second moment
    const Adam<T> k(s);
    for (uint64_t i = 0; i < count; ++i) {
        a[i] = k.beta1 * a[i] + k.rest1 * g[i];
        b[i] = k.beta2 * b[i] + k.rest2 * g[i] * g[i];
        c[i] = b[i] < c[i] ? c[i] : b[i];
        w[i] -= k.rate * a[i] / (root(c[i] * k.second) + k.epsilon);
    }
}

} // namespace

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
