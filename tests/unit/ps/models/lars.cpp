// SPDX-License-Identifier: Apache-2.0
#include "unit/ps/rule_model.h"

#include <cmath>

namespace {

void update(ModelState &s, uint64_t first, uint64_t count, const double *g) {
    double ww = 0, gg = 0;
    for (uint64_t i = 0; i < count; ++i) {
        ww += s.w[first + i] * s.w[first + i];
        gg += g[i] * g[i];
    }
    const double decay = s.p.weight_decay;
    double local = s.p.trust * std::sqrt(ww) / (std::sqrt(gg) + decay * std::sqrt(ww));
    if (ww == 0 || gg == 0) local = 1;
    for (uint64_t i = 0; i < count; ++i) {
        double &w = s.w[first + i], &v = s.a[first + i];
        v = s.p.momentum * v + s.p.learning_rate * local * (g[i] + decay * w);
        w -= v;
    }
}

const AddFormula lars({.rule = DTRAIN_RULE_LARS, .row = update, .own_decay = true});

} // namespace
