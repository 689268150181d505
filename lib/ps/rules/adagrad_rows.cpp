// Adagrad with one sum for each row, as in PyTorch-BigGraph. Lerer et al., SysML 2019.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

#include <cmath>

namespace dtrain::ps {
namespace {

double ratio_of_row(const Step &s, const Norms &norms, uint64_t count, double &sum) {
    sum += norms.direction / static_cast<double>(count);
    return 1 / (std::sqrt(sum) + s.epsilon);
}

} // namespace

extern const RuleInfo adagrad_rows_rule = {
    .name = "adagrad_rows",
    .formula = "`a = a + mean of the row's g^2`; `w = w - lr g / (sqrt(a) + eps)`",
    .source = "as PyTorch-BigGraph: Lerer et al. 2019",
    .flags = float_optimizer | RuleInfo::row_state,
    .slots = {"sum"},
    .accumulator = 0,
    .update = &sgd_kernels,
    .ratio = ratio_of_row,
    .takes = takes_epsilon | takes_accumulator,
};

} // namespace dtrain::ps
