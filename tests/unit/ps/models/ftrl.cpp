// SPDX-License-Identifier: Apache-2.0
#include "unit/ps/rule_model.h"

#include <cmath>

namespace {

void update(ModelState &s, uint64_t e, double g) {
    double &w = s.w[e], &z = s.a[e], &n = s.b[e];
    const double rate = s.p.learning_rate;
    z += g - (std::sqrt(n + g * g) - std::sqrt(n)) / rate * w;
    n += g * g;
    if (std::fabs(z) <= s.p.l1)
        w = 0;
    else
        w = -(z - std::copysign(s.p.l1, z)) / ((s.p.ftrl_beta + std::sqrt(n)) / rate + s.p.l2);
}

const AddFormula ftrl({.rule = DTRAIN_RULE_FTRL,
                       .element = update,
                       .own_proximal = true,
                       .accumulator = &ModelState::b});

} // namespace
