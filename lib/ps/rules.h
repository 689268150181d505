// Update rules: what a push of g does to values w. Formulas in docs/PARAMETER_SERVER.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/table_params.h"

#include <cstdint>

namespace dtrain::ps {

// Numbers of state that a rule keeps per element (momentum; sum of squares; two moments). They are
// doubles for f64 tables, else floats.
uint32_t rule_slots(uint32_t rule);
uint32_t slot_size(uint32_t dtype);
// The rule needs to know how many updates an element has had (bias correction).
bool rule_counts_steps(uint32_t rule);

struct RuleTarget {
    void *values = nullptr;
    void *slots[2] = {nullptr, nullptr}; // the first rule_slots() of them
};

// Applies the rule to `count` elements. step: the number of this update of these elements, from 1
// (read only where rule_counts_steps()). The memory of target and g must not overlap. No alignment
// beyond the element's is needed.
void apply_rule(const TableParams &params, uint64_t step, const RuleTarget &target, const void *g,
                uint64_t count);

void fill(uint32_t dtype, void *values, uint64_t count, double value);

} // namespace dtrain::ps
