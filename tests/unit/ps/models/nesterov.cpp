// SPDX-License-Identifier: Apache-2.0
#include "unit/ps/rule_model.h"

namespace {

void update(ModelState &s, uint64_t e, double g) {
    s.a[e] = s.p.momentum * s.a[e] + g;
    s.w[e] -= s.p.learning_rate * (g + s.p.momentum * s.a[e]);
}

const AddFormula nesterov({.rule = DTRAIN_RULE_NESTEROV, .element = update});

} // namespace
