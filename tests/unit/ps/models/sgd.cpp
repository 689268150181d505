// SPDX-License-Identifier: Apache-2.0
#include "unit/ps/rule_model.h"

namespace {

void update(ModelState &s, uint64_t e, double g) { s.w[e] -= s.p.learning_rate * g; }

const AddFormula sgd({.rule = DTRAIN_RULE_SGD, .element = update});

} // namespace
