// SPDX-License-Identifier: Apache-2.0
#include "unit/ps/rule_model.h"

namespace {

void update(ModelState &s, uint64_t e, double g) { s.w[e] += g; }

const AddFormula add({.rule = DTRAIN_RULE_ADD, .element = update});

} // namespace
