// A table's parameters, checked and with defaults filled in, and queries about them.
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

// A state array that a user's function keeps; fields as in dtrain_function_state_t.
struct FunctionState {
    std::string name;
    uint32_t dtype = 0;
    bool per_row = false;
    bool operator==(const FunctionState &) const = default;
};

// Fields as in dtrain_segment_t. Sent to the servers as raw bytes.
struct Segment {
    uint64_t first = 0, count = 0, rule = DTRAIN_RULE_ADD;
    double learning_rate = 0.01, momentum = 0.9, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8,
           rho = 0.9, clip_value = 0, clip_norm = 0, weight_decay = 0, l1 = 0, l2 = 0,
           trust = 0.001, ftrl_beta = 1, accumulator = 0;
    bool operator==(const Segment &) const = default;
};

// Fields as in dtrain_table_params_t.
struct TableParams {
    TableParams(); // not inline, since many places copy these parameters
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
    uint32_t storage_dtype = 0, wire_dtype = 0; // 0: the same as dtype (resolve() sets 0 then)
    uint32_t not_finite = DTRAIN_NOT_FINITE_TAKE, steps = DTRAIN_STEPS_OWN;
    double accumulator = 0;
    uint32_t mean_over = DTRAIN_MEAN_WORKERS, schedule = DTRAIN_SCHEDULE_CONSTANT;
    uint64_t warmup_steps = 0, decay_steps = 0;
    double decay = 0;
    uint32_t memory = 0; // 0: of the host
    std::string function = {};
    std::vector<Segment> segments = {};
    Placement placement = {};
    std::vector<FunctionState> states = {}; // state of the servers' function; not a parameter
};

inline constexpr double max_weight = 1e300; // keeps sums of weights finite
// Of a table, an element or a row: all numbers up to this are exact doubles.
inline constexpr uint64_t most_updates = uint64_t{1} << 53;
inline constexpr uint32_t field_count = 40;
using TableFields = std::array<uint64_t, field_count>; // bit patterns, as sent on the wire
// Further field numbers: the table's name, which is not a parameter, and parameters that are not
// numbers.
inline constexpr uint32_t name_field = field_count, function_field = field_count + 1,
                          segments_field = field_count + 2, placement_field = field_count + 3;
inline constexpr uint32_t rate_field = 6;

bool is_float(uint32_t dtype);
TableFields to_fields(const TableParams &params);
// Sets all parameters except function, segments and placement. Returns the first field whose value
// does not fit into its parameter, or field_count.
uint32_t from_fields(const TableFields &fields, TableParams &params);
// The parameters in the caller's form; pointers in it refer to memory of params.
dtrain_table_params_t to_given(const TableParams &params);
// The types of values in the servers' storage, and in pushes and answers to pulls.
inline uint32_t storage_dtype_of(const TableParams &params) {
    return params.storage_dtype != 0 ? params.storage_dtype : params.dtype;
}
inline uint32_t wire_dtype_of(const TableParams &params) {
    return params.wire_dtype != 0 ? params.wire_dtype : params.dtype;
}
inline bool is_half(uint32_t dtype) { return dtype == DTRAIN_F16 || dtype == DTRAIN_BF16; }
// The type in which servers compute and add up gradients. A function computes in the table's dtype.
inline uint32_t computed_dtype(const TableParams &params) {
    const bool own = params.rule == DTRAIN_RULE_FUNCTION || !is_half(params.dtype);
    return own ? params.dtype : uint32_t{DTRAIN_F32};
}
// Whether values are widened (narrow.h) for every update and rounded after it.
inline bool is_stored_narrow(const TableParams &params) {
    return storage_dtype_of(params) != computed_dtype(params);
}
inline bool is_sparse(const TableParams &params) { return params.dim > 0; }
// Whether servers keep the values on an accelerator, and why they cannot; nullptr: they can.
inline bool is_on_device(const TableParams &params) { return params.memory != 0; }
const char *unfit_for_device(const TableParams &params);
// Whether the pushes of a clock are collected and applied together at its end.
inline bool collects(const TableParams &params) {
    return params.consistency == DTRAIN_BSP || params.consistency == DTRAIN_QUORUM;
}
// Whether collected pushes are kept by worker until then, so that the server can leave out workers
// or fix the order of addition.
inline bool collects_apart(const TableParams &params) {
    return params.consistency == DTRAIN_QUORUM || params.reproducible != 0;
}
const char *field_name(uint64_t field);
// The first field that is not valid, or field_count.
uint32_t first_bad_field(const TableParams &params);

// Whether pushes may have a weight, and which weights are valid.
inline bool takes_weights(const TableParams &params) {
    return collects(params) && params.aggregate == DTRAIN_AVG && is_float(params.dtype);
}
inline bool valid_weight(double weight) { return weight > 0 && weight <= max_weight; }
// The fields that dtrain_table_set_consistency() changes, as sent on the wire.
inline constexpr uint64_t mode_only_asks = uint64_t{1} << 63; // asks if the change is possible
inline constexpr uint64_t mode_refused = uint64_t{1} << 62;   // the worker does not agree
inline constexpr uint64_t mode_decided = uint64_t{1} << 61;   // a server has made the change
uint64_t mode_bits(const TableParams &params);
void take_mode(uint64_t bits, TableParams &params);
std::string_view consistency_name(uint32_t consistency); // "BSP"; "?": no mode has this number
std::string mode_text(uint64_t bits);                    // "SSP with staleness 3"
// The first field that is not valid for this number of workers, or field_count.
uint32_t first_unfit_field(const TableParams &params, uint32_t workers);
// An error text with the field's name and its valid values: "quorum is not valid (...)".
std::string invalid_text(uint32_t field);

// All DTRAIN_GIVEN_* bits: the numbers that have a default.
inline constexpr uint32_t every_number = (DTRAIN_GIVEN_ACCUMULATOR << 1) - 1;
// Whether the caller set a value: it is not 0, or its bit is set.
inline bool was_given(double value, uint32_t bit, uint32_t given) {
    return value != 0 || (given & bit) != 0;
}
// Takes the caller's parameters and fills in defaults. DTRAIN_ERR_INVALID: the text names the
// field.
Status resolve(const dtrain_table_params_t &given, std::string_view name, TableParams &params);
// Whether the table can keep these states: state per row needs a table with rows.
bool may_keep(const TableParams &params, const std::vector<FunctionState> &states);
inline bool is_segmented(const TableParams &params) { return !params.segments.empty(); }
inline bool counts_by_table(const TableParams &params) {
    return params.steps == DTRAIN_STEPS_TABLE;
}
inline bool is_scheduled(const TableParams &params) {
    return params.schedule != DTRAIN_SCHEDULE_CONSTANT || params.warmup_steps > 0;
}
// Whether rules or learning rates depend on the number of the table's update.
inline bool numbers_updates(const TableParams &params) {
    return counts_by_table(params) || is_scheduled(params);
}
inline bool has_function(const TableParams &params) { return params.rule == DTRAIN_RULE_FUNCTION; }
// Whether the name has 1 to `most` characters of [A-Za-z0-9_.-].
bool is_plain_name(std::string_view name, size_t most);
inline constexpr size_t max_function_name = 63;

} // namespace dtrain::ps
