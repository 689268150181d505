// Launches the passes of update rules.
// SPDX-License-Identifier: Apache-2.0
#include "launch.h"

#include "dtrain.h"

namespace dtrain::cuda {
namespace {

// The kernels of a rule's passes; without a ratio it takes no norms itself.
struct Rule {
    uint32_t number;
    Kernel apply, norms = kernel_norms, ratio = kernel_count;
};
constexpr Rule rules[] = {
    {DTRAIN_RULE_ADD, kernel_add},
    {DTRAIN_RULE_ASSIGN, kernel_assign},
    {DTRAIN_RULE_SGD, kernel_sgd},
    {DTRAIN_RULE_MOMENTUM, kernel_momentum},
    {DTRAIN_RULE_ADAGRAD, kernel_adagrad},
    {DTRAIN_RULE_ADAM, kernel_adam},
    {DTRAIN_RULE_MEAN, kernel_mean},
    {DTRAIN_RULE_MIN, kernel_min},
    {DTRAIN_RULE_MAX, kernel_max},
    {DTRAIN_RULE_NESTEROV, kernel_nesterov},
    {DTRAIN_RULE_ADAGRAD_ROWS, kernel_adagrad_rows, kernel_norms, kernel_adagrad_rows_ratio},
    {DTRAIN_RULE_RMSPROP, kernel_rmsprop},
    {DTRAIN_RULE_ADADELTA, kernel_adadelta},
    {DTRAIN_RULE_ADAMW, kernel_adamw},
    {DTRAIN_RULE_AMSGRAD, kernel_amsgrad},
    {DTRAIN_RULE_FTRL, kernel_ftrl},
    {DTRAIN_RULE_LARS, kernel_lars, kernel_norms, kernel_lars_ratio},
    {DTRAIN_RULE_LAMB, kernel_lamb, kernel_lamb_norms, kernel_lamb_ratio},
};
static_assert(norm_block == DTRAIN_DV_NORM_BLOCK && update_adjusts == DTRAIN_DV_ADJUSTS &&
              update_proximal == DTRAIN_DV_PROXIMAL && update_clipped == DTRAIN_DV_CLIPPED &&
              update_by_row == DTRAIN_DV_BY_ROW);

const Rule *find(uint32_t number) {
    for (const Rule &rule : rules)
        if (rule.number == number) return &rule;
    return nullptr;
}

Kernel kernel_of(const Rule &rule, uint32_t pass) {
    const Kernel by_pass[] = {rule.apply, kernel_clip_norms, kernel_clip_scale, rule.norms,
                              rule.ratio};
    return pass < std::size(by_pass) ? by_pass[pass] : kernel_count;
}

} // namespace

bool has_rule(uint32_t number) { return find(number) != nullptr; }

Status update(dtrain_dv_queue &queue, const dtrain_dv_work_t &work) {
    if (work.update == nullptr) return refuse(queue, "update is NULL");
    const dtrain_dv_update_t u = taken(*work.update);
    const Kernel kernel = kernel_of(*find(work.op), u.pass);
    if (kernel == kernel_count) return refuse(queue, "the rule has no such pass");
    if (u.columns == 0 || u.stride < u.columns || work.count % u.columns != 0)
        return refuse(queue, "the elements are not rows");
    const bool by_row = u.pass != DTRAIN_DV_PASS_APPLY || (u.flags & DTRAIN_DV_BY_ROW) != 0;
    if (by_row && u.norms == nullptr) return refuse(queue, "norms is NULL");
    UpdateArguments arguments{};
    const uint64_t rows = work.count / u.columns;
    const uint64_t blocks = rows * ((u.columns + norm_block - 1) / norm_block);
    arguments.values = work.dsts[0];
    arguments.gradients = work.srcs[0];
    std::copy_n(u.slots, std::size(arguments.slots), arguments.slots);
    arguments.factors = static_cast<double *>(u.norms);
    arguments.blocks = arguments.factors + 2 * rows;
    arguments.count = work.count;
    arguments.columns = u.columns;
    arguments.stride = u.stride;
    arguments.numbers = {u.rate, u.momentum,  u.beta1,     u.beta2,  u.rho,   u.epsilon,
                         u.l1,   u.l2,        u.ftrl_beta, u.trust,  u.decay, u.own_decay,
                         u.clip, u.clip_norm, u.first,     u.second, u.share};
    arguments.flags = u.flags;
    const uint64_t items[] = {work.count, blocks, rows, blocks, rows};
    const uint32_t module = work.dtype == DTRAIN_F64 ? rules_f64 : rules_f32;
    if (work.dtype != DTRAIN_F64 && work.dtype != DTRAIN_F32)
        return refuse(queue, "rules are of f32 and f64");
    return launch(queue, module, kernel, arguments, items[u.pass]);
}

} // namespace dtrain::cuda
