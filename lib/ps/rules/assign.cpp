// Overwrites values.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

namespace dtrain::ps {
extern const RuleInfo assign_rule = {
    .name = "assign",
    .formula = "`w = g`",
};

} // namespace dtrain::ps
