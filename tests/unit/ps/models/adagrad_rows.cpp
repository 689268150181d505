// SPDX-License-Identifier: Apache-2.0
#include "unit/ps/rule_model.h"

#include <cmath>

namespace {

void update(ModelState &s, uint64_t first, uint64_t count, const double *g) {
    double sum = 0;
    for (uint64_t i = 0; i < count; ++i) sum += g[i] * g[i];
    double &state = s.a[first];
    state += sum / double(count);
    for (uint64_t i = 0; i < count; ++i)
        s.w[first + i] -= s.p.learning_rate * g[i] / (std::sqrt(state) + s.p.epsilon);
}

const AddFormula adagrad_rows({.rule = DTRAIN_RULE_ADAGRAD_ROWS, .row = update});

} // namespace
