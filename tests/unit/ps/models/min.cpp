// SPDX-License-Identifier: Apache-2.0
#include "unit/ps/rule_model.h"

#include <algorithm>

namespace {

void update(ModelState &s, uint64_t e, double g) { s.w[e] = std::min(s.w[e], g); }

const AddFormula min({.rule = DTRAIN_RULE_MIN, .element = update});

} // namespace
