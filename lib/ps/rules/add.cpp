// Adds pushes to values.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

namespace dtrain::ps {
extern const RuleInfo add_rule = {
    .name = "add",
    .formula = "`w = w + g`",
};

} // namespace dtrain::ps
