// Answers questions about the rules of a table.
// SPDX-License-Identifier: Apache-2.0
#include "ps/table/rules.h"

#include "device/kernels.h"
#include "ps/table/narrow.h"
#include "ps/table/table_segments.h"

#include <algorithm>
#include <cmath>

namespace dtrain::ps {
namespace {

// Whether has(rule) holds for the table's rule or a segment's rule.
template <class F> bool any_rule(const TableParams &params, F &&has) {
    auto its = [&](const Segment &segment) { return has(rule_info(uint32_t(segment.rule))); };
    return has(rule_info(params.rule)) ||
           std::any_of(params.segments.begin(), params.segments.end(), its);
}

bool any_rule_is(const TableParams &params, uint32_t flag) {
    return any_rule(params, [&](const RuleInfo &info) { return info.is(flag); });
}

} // namespace

bool takes_norms(const TableParams &params) {
    return rule_info(params.rule).ratio != nullptr ||
           (params.clip_norm > 0 && !has_function(params));
}

bool by_whole_rows(const TableParams &params) {
    const bool rows = has_function(params) || is_segmented(params);
    return takes_norms(params) || (rows && params.row_length > 0);
}

bool accumulates(const TableParams &params) {
    return is_segmented(params) ||
           (params.rule != DTRAIN_RULE_ASSIGN && rule_info(params.rule).combine == DTRAIN_SUM);
}

bool rounds_at_random(const TableParams &params) {
    return is_stored_narrow(params) && accumulates(params);
}

uint64_t whole_elements(const TableParams &params) {
    if (params.row_length > 0) return params.row_length;
    return params.storage_dtype == DTRAIN_I8 ? block_values : 0;
}

std::string rule_title(const TableParams &params) {
    if (is_segmented(params)) return "segments " + segments_title(params);
    std::string title = rule_info(params.rule).name;
    return has_function(params) ? title + " " + params.function : title;
}

bool takes_steps(const TableParams &params) {
    return any_rule(params, [](const RuleInfo &info) { return info.counts(); });
}

bool may_count_by_table(const TableParams &params) {
    return takes_steps(params) && !any_rule_is(params, RuleInfo::own_steps);
}

bool counts_steps(const TableParams &params) {
    return takes_steps(params) && !counts_by_table(params);
}

uint64_t counted_elements(const TableParams &params) {
    if (is_sparse(params)) return params.dim;
    const bool rows = is_segmented(params) || rule_info(params.rule).is(RuleInfo::counts_rows);
    return rows ? params.row_length : 1;
}

bool has_rate(const TableParams &params) { return any_rule_is(params, RuleInfo::optimizer); }

bool divides_by_rate(const TableParams &params) {
    return any_rule_is(params, RuleInfo::own_proximal);
}

bool valid_rate(const TableParams &params, double rate) {
    for (const Segment &segment : params.segments)
        if (!valid_rate(segment_params(params, segment), segment.learning_rate * rate))
            return false;
    return std::isfinite(rate) && (divides_by_rate(params) ? rate > 0 : rate >= 0);
}

uint32_t slot_dtype(uint32_t dtype) { return dtype == DTRAIN_F64 ? DTRAIN_F64 : DTRAIN_F32; }

uint32_t slot_size(uint32_t dtype) { return dtype == DTRAIN_F64 ? 8 : 4; }

bool find_state(const TableParams &params, uint64_t index, StateArray &out) {
    const uint64_t row = is_sparse(params) ? params.dim : params.row_length;
    auto slot = [&](const RuleInfo &info, uint64_t number, double accumulator) {
        const bool by_row = info.is(RuleInfo::row_state);
        out = {info.slots[number],
               slot_dtype(params.dtype),
               slot_size(params.dtype),
               by_row ? row : 1,
               1,
               by_row,
               false,
               number == info.accumulator ? accumulator : 0};
    };
    if (has_function(params)) {
        if (index >= params.states.size()) return false;
        const FunctionState &state = params.states[index];
        out = {state.name,
               state.dtype,
               uint32_t(device::dtype_size(state.dtype)),
               state.per_row ? row : 1,
               1,
               state.per_row,
               false,
               0};
        return true;
    }
    uint64_t slots = 0; // of the segments before
    for (size_t i = 0; i < params.segments.size(); ++i) {
        const RuleInfo &info = rule_info(uint32_t(params.segments[i].rule));
        if (index - slots < info.slot_count()) {
            slot(info, index - slots, params.segments[i].accumulator);
            out.name = "segment" + std::to_string(i) + "." + out.name;
            out.elements = row;
            out.numbers = out.by_row ? 1 : params.segments[i].count;
            return true;
        }
        slots += info.slot_count();
    }
    const RuleInfo &info = rule_info(params.rule);
    if (index - slots < info.slot_count()) {
        slot(info, index - slots, params.accumulator);
        return true;
    }
    if (index != slots + info.slot_count() || !counts_steps(params)) return false;
    const uint64_t elements = counted_elements(params);
    out = {"steps", DTRAIN_U64, 8, elements, 1, elements > 1, true, 0};
    return true;
}

std::vector<StateArray> state_arrays(const TableParams &params) {
    std::vector<StateArray> all;
    StateArray array;
    for (uint64_t i = 0; find_state(params, i, array); ++i) all.push_back(array);
    return all;
}

std::vector<StateArray> slots_of(const TableParams &params) {
    std::vector<StateArray> slots = state_arrays(params);
    std::erase_if(slots, [](const StateArray &array) { return array.steps; });
    return slots;
}

} // namespace dtrain::ps
