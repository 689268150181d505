// SPDX-License-Identifier: Apache-2.0
#include "unit/ps/rule_model.h"

namespace {

void update(ModelState &s, uint64_t e, double g) { s.w[e] += (g - s.w[e]) / double(++s.steps[e]); }

const AddFormula mean({.rule = DTRAIN_RULE_MEAN, .element = update});

} // namespace
