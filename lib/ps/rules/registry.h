// All update rules, by their numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/rules/rule.h"

#include <cstdint>
#include <span>

namespace dtrain::ps {

bool rule_known(uint32_t rule);
extern const RuleInfo *const *const rules_by_number;
// The rule must be known, or 0.
inline const RuleInfo &rule_info(uint32_t rule) { return *rules_by_number[rule]; }
std::span<const uint32_t> builtin_rules(); // ascending: all but FUNCTION

} // namespace dtrain::ps
