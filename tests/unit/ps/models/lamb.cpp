// SPDX-License-Identifier: Apache-2.0
#include "unit/ps/models/adam.h"

#include <cmath>
#include <vector>

namespace {

void update(ModelState &s, uint64_t first, uint64_t count, const double *g) {
    std::vector<double> u(count);
    double ww = 0, uu = 0;
    for (uint64_t i = 0; i < count; ++i) {
        const uint64_t e = first + i;
        u[i] = adam_direction(s, e, g[i], s.b) + s.p.weight_decay * s.w[e];
        ww += s.w[e] * s.w[e];
        uu += u[i] * u[i];
    }
    const double ratio = ww > 0 && uu > 0 ? std::sqrt(ww) / std::sqrt(uu) : 1;
    for (uint64_t i = 0; i < count; ++i) s.w[first + i] -= s.p.learning_rate * ratio * u[i];
}

const AddFormula lamb({.rule = DTRAIN_RULE_LAMB, .row = update, .own_decay = true});

} // namespace
