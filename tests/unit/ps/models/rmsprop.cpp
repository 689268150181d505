// SPDX-License-Identifier: Apache-2.0
#include "unit/ps/rule_model.h"

#include <cmath>

namespace {

void update(ModelState &s, uint64_t e, double g) {
    s.a[e] = s.p.rho * s.a[e] + (1 - s.p.rho) * g * g;
    s.w[e] -= s.p.learning_rate * g / (std::sqrt(s.a[e]) + s.p.epsilon);
}

const AddFormula rmsprop({.rule = DTRAIN_RULE_RMSPROP, .element = update});

} // namespace
