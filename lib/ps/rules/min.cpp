// The least of a value and all pushes.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

namespace dtrain::ps {
extern const RuleInfo min_rule = {
    .name = "min",
    .formula = "`w = min(w, g)`",
    .combine = DTRAIN_MIN,
};

} // namespace dtrain::ps
