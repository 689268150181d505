// SPDX-License-Identifier: Apache-2.0
#include "unit/ps/models/adam.h"

namespace {

void update(ModelState &s, uint64_t e, double g) {
    const double decay = s.p.learning_rate * s.p.weight_decay * s.w[e];
    s.w[e] -= decay + s.p.learning_rate * adam_direction(s, e, g, s.b);
}

const AddFormula adamw({.rule = DTRAIN_RULE_ADAMW, .element = update, .own_decay = true});

} // namespace
