// The greatest of a value and all pushes.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

namespace dtrain::ps {
extern const RuleInfo max_rule = {
    .name = "max",
    .formula = "`w = max(w, g)`",
    .combine = DTRAIN_MAX,
};

} // namespace dtrain::ps
