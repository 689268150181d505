// A function of the servers (dtrain_function.h), which ps/optimizer/function_call.h calls; it
// may use every number.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/rule.h"

namespace dtrain::ps {
extern const RuleInfo function_rule = {
    .name = "function",
    .formula = "what a C function of the program says",
    .flags = RuleInfo::optimizer,
    .takes = (DTRAIN_GIVEN_ACCUMULATOR << 1) - 1,
};

} // namespace dtrain::ps
