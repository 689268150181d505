// SPDX-License-Identifier: Apache-2.0
#include "unit/ps/rule_model.h"

namespace {

void update(ModelState &s, uint64_t e, double g) {
    const double mixed = s.p.beta1 * s.a[e] + (1 - s.p.beta1) * g;
    const double sign = mixed > 0 ? 1 : mixed < 0 ? -1 : 0;
    s.w[e] -= s.p.learning_rate * sign + s.p.learning_rate * s.p.weight_decay * s.w[e];
    s.a[e] = s.p.beta2 * s.a[e] + (1 - s.p.beta2) * g;
}

const AddFormula lion({.rule = DTRAIN_RULE_LION, .element = update, .own_decay = true});

} // namespace
