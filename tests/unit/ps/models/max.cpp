// SPDX-License-Identifier: Apache-2.0
#include "unit/ps/rule_model.h"

#include <algorithm>

namespace {

void update(ModelState &s, uint64_t e, double g) { s.w[e] = std::max(s.w[e], g); }

const AddFormula max({.rule = DTRAIN_RULE_MAX, .element = update});

} // namespace
