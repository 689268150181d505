// The update rules, one row of the table each, and queries about them.
// SPDX-License-Identifier: Apache-2.0
#include "ps/table/rules.h"

#include "device/kernels.h"
#include "ps/table/narrow.h"
#include "ps/table/table_segments.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace dtrain::ps {
namespace {

// A row whose norm is 0 moves at the plain rate, so that rows of zeros can change.
double lars_ratio(const Step &s, const Norms &norms, uint64_t, double &) {
    if (norms.values == 0 || norms.direction == 0) return 1;
    double values = std::sqrt(norms.values);
    return s.trust * values / (std::sqrt(norms.direction) + s.own_decay * values);
}

double lamb_ratio(const Step &, const Norms &norms, uint64_t, double &) {
    if (norms.values == 0 || norms.direction == 0) return 1;
    return std::sqrt(norms.values / norms.direction);
}

double row_ratio(const Step &s, const Norms &norms, uint64_t count, double &sum) {
    sum += norms.direction / static_cast<double>(count);
    return 1 / (std::sqrt(sum) + s.epsilon);
}

using R = RuleInfo;
using K = KernelTable;
constexpr uint32_t optimizer = R::optimizer | R::floats;
constexpr uint32_t takes_rate = DTRAIN_GIVEN_LEARNING_RATE,
                   takes_epsilon = takes_rate | DTRAIN_GIVEN_EPSILON,
                   takes_momentum = takes_rate | DTRAIN_GIVEN_MOMENTUM,
                   takes_rho = takes_epsilon | DTRAIN_GIVEN_RHO,
                   takes_moments = takes_epsilon | DTRAIN_GIVEN_BETA1 | DTRAIN_GIVEN_BETA2,
                   takes_accumulator = DTRAIN_GIVEN_ACCUMULATOR;

// Indexed by DTRAIN_RULE_*.
constexpr RuleInfo rules[] = {
    {.name = "none"},
    {.name = "add"},
    {.name = "assign"},
    {.name = "sgd", .flags = optimizer, .update = &K::sgd, .takes = takes_rate},
    {.name = "momentum",
     .flags = optimizer,
     .slots = {"momentum"},
     .update = &K::momentum,
     .takes = takes_momentum},
    {.name = "adagrad",
     .flags = optimizer,
     .slots = {"sum"},
     .accumulator = 0,
     .update = &K::adagrad,
     .takes = takes_epsilon | takes_accumulator},
    {.name = "adam",
     .flags = optimizer | R::counts_steps,
     .slots = {"moment1", "moment2"},
     .update = &K::adam,
     .takes = takes_moments},
    {.name = "mean", .flags = R::floats | R::counts_steps | R::own_steps, .update = &K::mean},
    {.name = "min", .combine = DTRAIN_MIN},
    {.name = "max", .combine = DTRAIN_MAX},
    {.name = "nesterov",
     .flags = optimizer,
     .slots = {"momentum"},
     .update = &K::nesterov,
     .takes = takes_momentum},
    {.name = "adagrad_rows",
     .flags = optimizer | R::row_state,
     .slots = {"sum"},
     .accumulator = 0,
     .update = &K::sgd,
     .ratio = row_ratio,
     .takes = takes_epsilon | takes_accumulator},
    {.name = "rmsprop",
     .flags = optimizer,
     .slots = {"square"},
     .accumulator = 0,
     .update = &K::rmsprop,
     .takes = takes_rho | takes_accumulator},
    {.name = "adadelta",
     .flags = optimizer,
     .slots = {"square", "delta"},
     .accumulator = 0,
     .update = &K::adadelta,
     .rate = 1,
     .epsilon = 1e-6,
     .takes = takes_rho | takes_accumulator},
    {.name = "adamw",
     .flags = optimizer | R::counts_steps | R::own_decay,
     .slots = {"moment1", "moment2"},
     .update = &K::adamw,
     .takes = takes_moments},
    {.name = "amsgrad",
     .flags = optimizer | R::counts_steps,
     .slots = {"moment1", "moment2", "greatest"},
     .update = &K::amsgrad,
     .takes = takes_moments},
    {.name = "ftrl",
     .flags = optimizer | R::own_proximal,
     .slots = {"z", "n"},
     .accumulator = 1,
     .update = &K::ftrl,
     .takes = takes_rate | DTRAIN_GIVEN_FTRL_BETA | takes_accumulator},
    {.name = "lars",
     .flags = optimizer | R::own_decay,
     .slots = {"momentum"},
     .update = &K::lars,
     .ratio = lars_ratio,
     .takes = takes_momentum | DTRAIN_GIVEN_TRUST},
    {.name = "lamb",
     .flags = optimizer | R::counts_rows | R::own_decay,
     .slots = {"moment1", "moment2"},
     .update = &K::lamb,
     .direction = &K::lamb_direction,
     .ratio = lamb_ratio,
     .epsilon = 1e-6,
     .takes = takes_moments},
    {.name = "dc_sgd",
     .flags = optimizer | R::backs_up,
     .update = &K::dc_sgd,
     .takes = takes_rate | DTRAIN_GIVEN_COMPENSATION},
    {.name = "function", .flags = R::optimizer, .takes = every_number},
};

// Whether has(rule) holds for the table's rule or a segment's rule.
template <class F> bool any_rule(const TableParams &params, F &&has) {
    auto its = [&](const Segment &segment) { return has(rules[segment.rule]); };
    return has(rules[params.rule]) ||
           std::any_of(params.segments.begin(), params.segments.end(), its);
}

bool any_rule_is(const TableParams &params, uint32_t flag) {
    return any_rule(params, [&](const RuleInfo &info) { return info.is(flag); });
}

} // namespace

bool rule_known(uint32_t rule) { return rule >= DTRAIN_RULE_ADD && rule < std::size(rules); }

const RuleInfo &rule_info(uint32_t rule) { return rules[rule]; }

bool takes_norms(const TableParams &params) {
    return rules[params.rule].ratio != nullptr || (params.clip_norm > 0 && !has_function(params));
}

bool by_whole_rows(const TableParams &params) {
    const bool rows = has_function(params) || is_segmented(params);
    return takes_norms(params) || (rows && params.row_length > 0);
}

bool accumulates(const TableParams &params) {
    return is_segmented(params) ||
           (params.rule != DTRAIN_RULE_ASSIGN && rules[params.rule].combine == DTRAIN_SUM);
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
    std::string title = rules[params.rule].name;
    return has_function(params) ? title + " " + params.function : title;
}

bool takes_steps(const TableParams &params) {
    return any_rule(params, [](const RuleInfo &info) { return info.counts(); });
}

bool may_count_by_table(const TableParams &params) {
    return takes_steps(params) && !any_rule_is(params, R::own_steps);
}

bool counts_steps(const TableParams &params) {
    return takes_steps(params) && !counts_by_table(params);
}

uint64_t counted_elements(const TableParams &params) {
    if (is_sparse(params)) return params.dim;
    const bool rows = is_segmented(params) || rules[params.rule].is(R::counts_rows);
    return rows ? params.row_length : 1;
}

bool has_rate(const TableParams &params) { return any_rule_is(params, R::optimizer); }

bool divides_by_rate(const TableParams &params) { return any_rule_is(params, R::own_proximal); }

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
        const RuleInfo &info = rules[params.segments[i].rule];
        if (index - slots < info.slot_count()) {
            slot(info, index - slots, params.segments[i].accumulator);
            out.name = "segment" + std::to_string(i) + "." + out.name;
            out.elements = row;
            out.numbers = out.by_row ? 1 : params.segments[i].count;
            return true;
        }
        slots += info.slot_count();
    }
    const RuleInfo &info = rules[params.rule];
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
