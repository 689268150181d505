// SPDX-License-Identifier: Apache-2.0
#include "unit/ps/models/adam.h"

namespace {

void update(ModelState &s, uint64_t e, double g) {
    s.w[e] -= s.p.learning_rate * adam_direction(s, e, g, s.c);
}

const AddFormula amsgrad({.rule = DTRAIN_RULE_AMSGRAD, .element = update});

} // namespace
