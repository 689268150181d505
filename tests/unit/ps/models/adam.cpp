// SPDX-License-Identifier: Apache-2.0
#include "unit/ps/models/adam.h"

namespace {

void update(ModelState &s, uint64_t e, double g) {
    s.w[e] -= s.p.learning_rate * adam_direction(s, e, g, s.b);
}

const AddFormula adam({.rule = DTRAIN_RULE_ADAM, .element = update});

} // namespace
