// SPDX-License-Identifier: Apache-2.0
#include "unit/ps/rule_model.h"

namespace {

void update(ModelState &s, uint64_t e, double g) {
    s.a[e] = s.p.momentum * s.a[e] + g;
    s.w[e] -= s.p.learning_rate * s.a[e];
}

const AddFormula momentum({.rule = DTRAIN_RULE_MOMENTUM, .element = update});

} // namespace
