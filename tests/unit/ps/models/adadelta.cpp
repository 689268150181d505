// SPDX-License-Identifier: Apache-2.0
#include "unit/ps/rule_model.h"

#include <cmath>

namespace {

void update(ModelState &s, uint64_t e, double g) {
    double &a = s.a[e], &b = s.b[e];
    a = s.p.rho * a + (1 - s.p.rho) * g * g;
    const double delta = std::sqrt(b + s.p.epsilon) / std::sqrt(a + s.p.epsilon) * g;
    b = s.p.rho * b + (1 - s.p.rho) * delta * delta;
    s.w[e] -= s.p.learning_rate * delta;
}

const AddFormula adadelta({.rule = DTRAIN_RULE_ADADELTA, .element = update});

} // namespace
