// A table's parameters: checked, with defaults filled in, comparable field by field.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"
#include "dtrain.h"
#include "ps/table/placement.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain::ps {

// An array that a user's function keeps, as dtrain_function_state_t.
struct FunctionState {
    std::string name;
    uint32_t dtype = 0;
    bool per_row = false;
    bool operator==(const FunctionState &) const = default;
};

// As dtrain_segment_t; travels as it is.
struct Segment {
    uint64_t first = 0, count = 0, rule = DTRAIN_RULE_ADD;
    double learning_rate = 0.01, momentum = 0.9, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8,
           rho = 0.9, clip_value = 0, clip_norm = 0, weight_decay = 0, l1 = 0, l2 = 0,
           trust = 0.001, ftrl_beta = 1, accumulator = 0;
    bool operator==(const Segment &) const = default;
};

// Fields as in dtrain_table_params_t.
struct TableParams {
    TableParams(); // these are copied in many places: not inline
    TableParams(const TableParams &other);
    TableParams(TableParams &&other) noexcept;
    TableParams &operator=(TableParams &&other) noexcept;
    ~TableParams();

    uint64_t length = 0;
    uint32_t dtype = 0, rule = DTRAIN_RULE_ADD, consistency = DTRAIN_ASYNC, staleness = 0,
             aggregate = DTRAIN_SUM;
    double learning_rate = 0.01, momentum = 0.9, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8,
           initial = 0;
    uint64_t row_length = 0;
    double rho = 0.9, clip_value = 0, clip_norm = 0, weight_decay = 0, l1 = 0, l2 = 0,
           trust = 0.001, ftrl_beta = 1, compensation = 0.04;
    uint32_t dim = 0, distribution = DTRAIN_INITIAL_CONSTANT;
    double spread = 0;
    uint64_t seed = 0, max_bytes = 0;
    uint32_t quorum = 0, reproducible = 0;
    uint32_t storage_dtype = 0, wire_dtype = 0; // 0: as dtype, which resolve() makes 0
    uint32_t not_finite = DTRAIN_NOT_FINITE_TAKE, steps = DTRAIN_STEPS_OWN;
    double accumulator = 0;
    uint32_t mean_over = DTRAIN_MEAN_WORKERS, schedule = DTRAIN_SCHEDULE_CONSTANT;
    uint64_t warmup_steps = 0, decay_steps = 0;
    double decay = 0;
    std::string function = {};
    std::vector<Segment> segments = {};
    Placement placement = {};
    std::vector<FunctionState> states = {}; // of the servers' function: no parameter
};

inline constexpr double max_weight = 1e300; // so that sums of them are finite
inline constexpr uint32_t field_count = 39;
using TableFields = std::array<uint64_t, field_count>; // bit patterns, as they travel
// Beyond them: the table's name, which is no parameter, and parameters that are no numbers.
inline constexpr uint32_t name_field = field_count, function_field = field_count + 1,
                          segments_field = field_count + 2, placement_field = field_count + 3;
inline constexpr uint32_t rate_field = 6;

bool is_float(uint32_t dtype);
TableFields to_fields(const TableParams &params);
// All but function, segments and placement. The first field that does not fit into its parameter,
// or field_count.
uint32_t from_fields(const TableFields &fields, TableParams &params);
// As a caller would give them; what it points to is params'.
dtrain_table_params_t to_given(const TableParams &params);
// What servers keep values in; what pushes and answers to pulls are made of.
inline uint32_t storage_dtype_of(const TableParams &params) {
    return params.storage_dtype != 0 ? params.storage_dtype : params.dtype;
}
inline uint32_t wire_dtype_of(const TableParams &params) {
    return params.wire_dtype != 0 ? params.wire_dtype : params.dtype;
}
inline bool is_half(uint32_t dtype) { return dtype == DTRAIN_F16 || dtype == DTRAIN_BF16; }
// What servers compute in, and gradients are added up in; a function, in what the table is of.
inline uint32_t computed_dtype(const TableParams &params) {
    const bool own = params.rule == DTRAIN_RULE_FUNCTION || !is_half(params.dtype);
    return own ? params.dtype : uint32_t{DTRAIN_F32};
}
// Values are widened (narrow.h) for every update, and rounded after it.
inline bool is_stored_narrow(const TableParams &params) {
    return storage_dtype_of(params) != computed_dtype(params);
}
inline bool is_sparse(const TableParams &params) { return params.dim > 0; }
// Pushes of a clock are collected, and applied together when it is over.
inline bool collects(const TableParams &params) {
    return params.consistency == DTRAIN_BSP || params.consistency == DTRAIN_QUORUM;
}
// What it collects is kept by worker until then: so some can be left out, or the order be fixed.
inline bool collects_apart(const TableParams &params) {
    return params.consistency == DTRAIN_QUORUM || params.reproducible != 0;
}
const char *field_name(uint64_t field);
// The first field that is not valid, or field_count.
uint32_t first_bad_field(const TableParams &params);

// Whether its pushes may have a weight, and which.
inline bool takes_weights(const TableParams &params) {
    return collects(params) && params.aggregate == DTRAIN_AVG && is_float(params.dtype);
}
inline bool valid_weight(double weight) { return weight > 0 && weight <= max_weight; }
// The fields that dtrain_table_set_consistency() changes, as they travel.
inline constexpr uint64_t mode_only_asks = uint64_t{1} << 63;
inline constexpr uint64_t mode_refused = uint64_t{1} << 62; // the worker does not agree
inline constexpr uint64_t mode_decided = uint64_t{1} << 61; // a server has made the change
uint64_t mode_bits(const TableParams &params);
void take_mode(uint64_t bits, TableParams &params);
// The first field that is not valid with so many workers, or field_count.
uint32_t first_unfit_field(const TableParams &params, uint32_t workers);
// Its name and what it takes, for the text of an error: "quorum is not valid (...)".
std::string invalid_text(uint32_t field);

// Of numbers that have a default (DTRAIN_GIVEN_*).
inline constexpr uint32_t every_number = (DTRAIN_GIVEN_ACCUMULATOR << 1) - 1;
// Whether the caller said it: with its bit, or not 0.
inline bool was_given(double value, uint32_t bit, uint32_t given) {
    return value != 0 || (given & bit) != 0;
}
// The caller's parameters with defaults; DTRAIN_ERR_INVALID naming the field.
Status resolve(const dtrain_table_params_t &given, std::string_view name, TableParams &params);
// State per row is for tables that have rows.
bool may_keep(const TableParams &params, const std::vector<FunctionState> &states);
inline bool is_segmented(const TableParams &params) { return !params.segments.empty(); }
inline bool counts_by_table(const TableParams &params) {
    return params.steps == DTRAIN_STEPS_TABLE;
}
inline bool is_scheduled(const TableParams &params) {
    return params.schedule != DTRAIN_SCHEDULE_CONSTANT || params.warmup_steps > 0;
}
// Rules or rates depend on the number of the table's update.
inline bool numbers_updates(const TableParams &params) {
    return counts_by_table(params) || is_scheduled(params);
}
inline bool has_function(const TableParams &params) { return params.rule == DTRAIN_RULE_FUNCTION; }
// A name of 1 to `most` characters of [A-Za-z0-9_.-].
bool is_plain_name(std::string_view name, size_t most);
inline constexpr size_t max_function_name = 63;

} // namespace dtrain::ps
