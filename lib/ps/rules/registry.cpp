// The table of rules. The build lists the constants DTRAIN_RULE_* of dtrain.h in dtrain_names.h
// (cmake/names.cmake); each needs a descriptor, or the library does not link.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/registry.h"

#include "dtrain_names.h"

#include <algorithm>
#include <array>

namespace dtrain::ps {

#define DTRAIN_DECLARE(NAME, name) extern const RuleInfo name##_rule;
DTRAIN_EACH_RULE(DTRAIN_DECLARE)

namespace {

constexpr RuleInfo no_rule = {.name = "none", .formula = ""};

#define DTRAIN_NUMBER(NAME, name) DTRAIN_RULE_##NAME,
constexpr auto numbers = std::to_array<uint32_t>({DTRAIN_EACH_RULE(DTRAIN_NUMBER)});
constexpr uint32_t last = *std::max_element(numbers.begin(), numbers.end());

constexpr auto rules = [] {
    std::array<const RuleInfo *, last + 1> all = {&no_rule};
#define DTRAIN_ENTER(NAME, name) all[DTRAIN_RULE_##NAME] = &name##_rule;
    DTRAIN_EACH_RULE(DTRAIN_ENTER)
    return all;
}();

constexpr auto builtin = [] {
    std::array<uint32_t, numbers.size() - 1> all = {};
    std::remove_copy(numbers.begin(), numbers.end(), all.begin(), uint32_t{DTRAIN_RULE_FUNCTION});
    std::sort(all.begin(), all.end());
    return all;
}();

} // namespace

bool rule_known(uint32_t rule) { return rule > 0 && rule <= last && rules[rule] != nullptr; }

extern const RuleInfo *const *const rules_by_number = rules.data();

std::span<const uint32_t> builtin_rules() { return builtin; }

} // namespace dtrain::ps
