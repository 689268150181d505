// SPDX-License-Identifier: Apache-2.0
#include "unit/ps/rule_model.h"

namespace {

void update(ModelState &s, uint64_t e, double g) {
    const double moved = s.w[e] - s.pulled[e];
    s.w[e] -= s.p.learning_rate * (g + s.p.compensation * g * g * moved);
}

const AddFormula dc_sgd({.rule = DTRAIN_RULE_DC_SGD, .element = update});

} // namespace
