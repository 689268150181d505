// The numeric parameters of a table with the texts for invalid values, and their checks.
// SPDX-License-Identifier: Apache-2.0
#include "ps/table/table_params.h"

#include "device/kernels.h"
#include "ps/table/dtype.h"
#include "ps/table/protocol.h"
#include "ps/table/rules.h"
#include "ps/table/table_fields.h"
#include "ps/table/table_segments.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <utility>

namespace dtrain::ps {
namespace {

constexpr Field wide_field(const char *name, uint64_t TableParams::*member, const char *hint = "") {
    return {.name = name, .wide = member, .hint = hint};
}
constexpr Field number_field(const char *name, uint32_t TableParams::*member,
                             const char *hint = "") {
    return {.name = name, .number = member, .hint = hint};
}
#define REAL_GIVEN(member, values, hint, bit)                                                      \
    Field {                                                                                        \
#member, nullptr, nullptr, &TableParams::member, &dtrain_table_params_t::member,           \
            Field::values, hint, bit                                                               \
    }
#define REAL(member, values) REAL_GIVEN(member, values, "", 0)
#define NUMBER(member, values, hint, bit)                                                          \
    REAL_GIVEN(member, values, " (" hint ")", DTRAIN_GIVEN_##bit)

constexpr const char *narrow_hint =
    " (the dtype, or F16, BF16 or I8 if the dtype is F32; I8 needs rows of 2 or more values)";

} // namespace

constexpr Field fields_of_table[field_count] = {
    wide_field("length", &TableParams::length),
    number_field("dtype", &TableParams::dtype),
    number_field(
        "rule", &TableParams::rule,
        " (most rules need a floating-point table; DC_SGD also needs a dense ASYNC or SSP table)"),
    number_field("consistency", &TableParams::consistency),
    number_field("staleness", &TableParams::staleness, " (only SSP has one)"),
    number_field("aggregate", &TableParams::aggregate),
    NUMBER(learning_rate, not_negative, "0 or more; more than 0 for FTRL", LEARNING_RATE),
    NUMBER(momentum, fraction, "0 or more and less than 1", MOMENTUM),
    NUMBER(beta1, fraction, "0 or more and less than 1", BETA1),
    NUMBER(beta2, fraction, "0 or more and less than 1", BETA2),
    NUMBER(epsilon, not_negative, "0 or more", EPSILON),
    REAL(initial, any),
    wide_field("row_length", &TableParams::row_length,
               " (it divides the length; rows over which norms are computed have at most 256 KiB, "
               "unless the table is BSP or QUORUM and stored as its dtype)"),
    NUMBER(rho, fraction, "0 or more and less than 1", RHO),
    REAL(clip_value, not_negative),
    REAL(clip_norm, not_negative),
    REAL(weight_decay, not_negative),
    REAL(l1, not_negative),
    REAL(l2, not_negative),
    NUMBER(trust, not_negative, "0 or more", TRUST),
    NUMBER(ftrl_beta, not_negative, "0 or more", FTRL_BETA),
    NUMBER(compensation, not_negative, "0 or more", COMPENSATION),
    number_field("dim", &TableParams::dim,
                 " (a row with its key, or its state, has at most 256 KiB)"),
    number_field("distribution", &TableParams::distribution),
    REAL(spread, not_negative),
    wide_field("seed", &TableParams::seed),
    wide_field("max_bytes", &TableParams::max_bytes,
               " (it is for sparse tables, and at least the bytes of a row)"),
    number_field("quorum", &TableParams::quorum,
                 " (only QUORUM has one: 1 to the number of workers)"),
    number_field("reproducible", &TableParams::reproducible,
                 " (0 or 1; 1 is for tables that sum the pushes of all workers: BSP, or a QUORUM "
                 "of all)"),
    number_field(
        "storage_dtype", &TableParams::storage_dtype,
        " (the dtype; or F16, BF16 or I8 if the dtype is F32; or F32 if the dtype is F16 or BF16; "
        "I8 needs rows of 2 or more values)"),
    number_field("wire_dtype", &TableParams::wire_dtype, narrow_hint),
    number_field("not_finite", &TableParams::not_finite,
                 " (DTRAIN_NOT_FINITE_*; only TAKE for tables of integers)"),
    number_field("steps", &TableParams::steps,
                 " (DTRAIN_STEPS_*; TABLE is for rules that count updates, but not for MEAN)"),
    NUMBER(accumulator, not_negative, "0 or more, and within the state's type", ACCUMULATOR),
    number_field("mean_over", &TableParams::mean_over,
                 " (DTRAIN_MEAN_*; PUSHERS is for sparse tables whose aggregate is AVG)"),
    number_field("schedule", &TableParams::schedule,
                 " (DTRAIN_SCHEDULE_*, for rules that have a learning rate)"),
    wide_field("warmup_steps", &TableParams::warmup_steps,
               " (it is for rules that have a learning rate)"),
    wide_field("decay_steps", &TableParams::decay_steps,
               " (1 or more with a schedule that is not CONSTANT, else 0)"),
    REAL_GIVEN(decay, not_negative,
               " (0 or more for LINEAR and COSINE, more than 0 for EXPONENTIAL and STAIRCASE, else "
               "0; FTRL divides by the rate, which must never become 0)",
               0),
    number_field("memory", &TableParams::memory,
                 " (0, DTRAIN_MEM_HOST or DTRAIN_MEM_CUDA; a GPU holds dense tables only, with "
                 "other rules than FUNCTION and DC_SGD, and a storage_dtype other than I8)"),
};
#undef NUMBER
#undef REAL
#undef REAL_GIVEN

namespace {

constexpr uint64_t most_bytes = uint64_t{1} << 56; // limit for the values of a table

bool fits(double value, uint32_t dtype) {
    if (is_float(dtype)) return std::isfinite(value);
    return visit_dtype(dtype, [&]<class T>() {
        // Both bounds are exact doubles: 2^bits is, while 2^bits - 1 may not be.
        double above = std::ldexp(1.0, std::numeric_limits<T>::digits);
        double below = std::is_signed_v<T> ? -above : 0.0;
        return value == std::trunc(value) && value >= below && value < above;
    });
}

bool valid_real(const Field &field, double value) {
    if (!std::isfinite(value)) return false;
    bool fraction = field.values == Field::fraction;
    return field.values == Field::any || (value >= 0 && (!fraction || value < 1));
}

bool valid_rule(const TableParams &p) {
    if (!rule_known(p.rule)) return false;
    const RuleInfo &info = rule_info(p.rule);
    bool served = (!collects(p) && !is_sparse(p)) || !info.is(RuleInfo::backs_up);
    return served && (is_float(p.dtype) || !info.is(RuleInfo::floats));
}

// The bytes of the largest number in a row's values and state.
uint64_t largest_number(const TableParams &p) {
    const bool state = rule_info(p.rule).slot_count() > 0 || is_segmented(p);
    return has_function(p)
               ? sizeof(uint64_t) // enough for any state of a function
               : std::max(device::dtype_size(p.dtype), size_t(state ? slot_size(p.dtype) : 0));
}

bool valid_rows(const TableParams &p) {
    if (is_sparse(p)) return p.row_length == 0; // a sparse table has dim instead
    if (p.row_length == 0) return !takes_norms(p);
    if (p.length % p.row_length != 0) return false;
    if (has_function(p) || is_segmented(p)) return p.row_length <= chunk_bytes / largest_number(p);
    bool fits_request = p.row_length <= chunk_bytes / device::dtype_size(p.dtype);
    const bool any_length = collects(p) && p.storage_dtype == 0; // else whole rows are widened
    return !takes_norms(p) || any_length || fits_request;
}

bool valid_dim(const TableParams &p) { return p.dim <= max_row_bytes / largest_number(p); }

bool valid_max_bytes(const TableParams &p) {
    const uint64_t row = p.dim * device::dtype_size(storage_dtype_of(p));
    return p.max_bytes == 0 || (is_sparse(p) && p.max_bytes >= row);
}

bool valid_not_finite(const TableParams &p) {
    if (p.not_finite == DTRAIN_NOT_FINITE_TAKE) return true;
    return is_float(p.dtype) &&
           (p.not_finite == DTRAIN_NOT_FINITE_REFUSE || p.not_finite == DTRAIN_NOT_FINITE_DROP);
}

bool valid_steps(const TableParams &p) {
    return p.steps == DTRAIN_STEPS_OWN || (p.steps == DTRAIN_STEPS_TABLE && may_count_by_table(p));
}

bool valid_mean(const TableParams &p) {
    if (p.mean_over == DTRAIN_MEAN_WORKERS) return true;
    return p.mean_over == DTRAIN_MEAN_PUSHERS && is_sparse(p) && p.aggregate == DTRAIN_AVG &&
           !has_function(p);
}

bool valid_schedule(const TableParams &p) {
    if (p.schedule == DTRAIN_SCHEDULE_CONSTANT) return true;
    return p.schedule > DTRAIN_SCHEDULE_CONSTANT && p.schedule <= DTRAIN_SCHEDULE_INVERSE_SQRT &&
           has_rate(p);
}

bool valid_accumulator(const TableParams &p) {
    return slot_dtype(p.dtype) == DTRAIN_F64 || p.accumulator <= std::numeric_limits<float>::max();
}

bool valid_decay(const TableParams &p) {
    switch (p.schedule) {
    case DTRAIN_SCHEDULE_LINEAR:
    case DTRAIN_SCHEDULE_COSINE: return p.decay > 0 || !divides_by_rate(p);
    case DTRAIN_SCHEDULE_EXPONENTIAL:
    case DTRAIN_SCHEDULE_STAIRCASE: return p.decay > 0 && (p.decay >= 1 || !divides_by_rate(p));
    default: return p.decay == 0;
    }
}

bool valid_function(const TableParams &p) {
    return has_function(p) ? is_plain_name(p.function, max_function_name) : p.function.empty();
}

bool valid_distribution(const TableParams &p) {
    if (p.distribution == DTRAIN_INITIAL_CONSTANT) return true;
    bool known =
        p.distribution == DTRAIN_INITIAL_UNIFORM || p.distribution == DTRAIN_INITIAL_NORMAL;
    return known && is_sparse(p) && is_float(p.dtype);
}

bool valid_spread(const TableParams &p) {
    if (p.distribution == DTRAIN_INITIAL_CONSTANT) return p.spread == 0;
    return std::isfinite(p.initial - p.spread) && std::isfinite(p.initial + p.spread);
}

// The narrow types for f32 tables. I8 needs rows of 2 or more values, since a scale for each value
// would not save memory.
bool valid_narrow(const TableParams &p, uint32_t dtype) {
    if (dtype == 0) return true;
    const bool known = dtype == DTRAIN_F16 || dtype == DTRAIN_BF16 || dtype == DTRAIN_I8;
    return p.dtype == DTRAIN_F32 && known &&
           (dtype != DTRAIN_I8 || (p.dim != 1 && p.row_length != 1));
}

// Values of f16 and bf16 tables may be stored as f32, which keeps small updates.
bool valid_storage(const TableParams &p) {
    const bool wide = p.storage_dtype == DTRAIN_F32 && is_half(p.dtype) && !has_function(p);
    return wide || valid_narrow(p, p.storage_dtype);
}

bool valid_aggregate(const TableParams &p) {
    bool own = rule_info(p.rule).combine != DTRAIN_SUM;
    return p.aggregate == DTRAIN_SUM || (p.aggregate == DTRAIN_AVG && !own);
}

// Parameters that modify an optimizer are only for rules that are optimizers.
bool valid_for_rule(const Field &field, const TableParams &p) {
    bool changes = field.real == &TableParams::clip_value ||
                   field.real == &TableParams::clip_norm ||
                   field.real == &TableParams::weight_decay || field.real == &TableParams::l1 ||
                   field.real == &TableParams::l2;
    return !changes || p.*field.real == 0 || rule_info(p.rule).is(RuleInfo::optimizer);
}

bool valid_memory(const TableParams &p) {
    return p.memory == 0 || (p.memory == DTRAIN_MEM_CUDA && unfit_for_device(p) == nullptr);
}

const char *hint(uint32_t field) {
    if (field < field_count) return fields_of_table[field].hint;
    if (field == segments_field || field == placement_field) return "";
    return " (1 to 63 letters, digits, '_', '.' or '-' with the rule FUNCTION, else NULL)";
}

} // namespace

TableParams::TableParams() = default;
TableParams::TableParams(const TableParams &) = default;
TableParams::TableParams(TableParams &&) noexcept = default;
TableParams &TableParams::operator=(TableParams &&) noexcept = default;
TableParams::~TableParams() = default;

bool is_float(uint32_t dtype) { return dtype >= DTRAIN_F32 && dtype <= DTRAIN_BF16; }

const char *unfit_for_device(const TableParams &p) {
    if (is_sparse(p)) return "the rows of sparse tables are in host memory only";
    if (has_function(p)) return "functions of users run on the servers' processors only";
    if (p.rule == DTRAIN_RULE_DC_SGD)
        return "DC_SGD keeps what each worker has pulled, in host memory only";
    if (p.storage_dtype == DTRAIN_I8) return "I8 is stored in host memory only";
    return nullptr;
}

bool may_keep(const TableParams &params, const std::vector<FunctionState> &states) {
    auto by_row = [](const FunctionState &state) { return state.per_row; };
    return is_sparse(params) || params.row_length > 0 ||
           std::none_of(states.begin(), states.end(), by_row);
}

bool is_plain_name(std::string_view name, size_t most) {
    auto plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '.' || c == '-';
    };
    return !name.empty() && name.size() <= most && std::all_of(name.begin(), name.end(), plain);
}

const char *field_name(uint64_t field) {
    if (field == name_field) return "name";
    if (field == function_field) return "function";
    if (field == segments_field) return "segments";
    if (field == placement_field) return "placement";
    return field < field_count ? fields_of_table[field].name : "?";
}

TableFields to_fields(const TableParams &p) {
    TableFields out;
    for (uint32_t i = 0; i < field_count; ++i) {
        const Field &field = fields_of_table[i];
        out[i] = field.wide != nullptr     ? p.*field.wide
                 : field.number != nullptr ? p.*field.number
                                           : std::bit_cast<uint64_t>(p.*field.real);
    }
    return out;
}

uint32_t from_fields(const TableFields &fields, TableParams &p) {
    for (uint32_t i = 0; i < field_count; ++i) {
        const Field &field = fields_of_table[i];
        if (field.number != nullptr && fields[i] > UINT32_MAX) return i;
        if (field.wide != nullptr) p.*field.wide = fields[i];
        if (field.number != nullptr) p.*field.number = static_cast<uint32_t>(fields[i]);
        if (field.real != nullptr) p.*field.real = std::bit_cast<double>(fields[i]);
    }
    return field_count;
}

uint32_t first_bad_field(const TableParams &p) {
    uint64_t size = device::dtype_size(p.dtype);
    // Fields 0 to 5 come first, since the checks below rely on them.
    if (is_sparse(p) ? p.length != 0 : p.length == 0 || p.length > most_bytes / 8) return 0;
    if (size == 0) return 1;
    if (!valid_rule(p)) return 2;
    if (p.consistency < DTRAIN_ASYNC || p.consistency > DTRAIN_QUORUM) return 3;
    if (!valid_aggregate(p)) return 5;
    if (is_segmented(p) && !valid_segments(p)) return segments_field;
    for (uint32_t i = 0; i < field_count; ++i) {
        const Field &field = fields_of_table[i];
        if (field.wide == &TableParams::row_length && !valid_rows(p)) return i;
        if (field.number == &TableParams::dim && !valid_dim(p)) return i;
        if (field.number == &TableParams::distribution && !valid_distribution(p)) return i;
        if (field.real == &TableParams::spread && !valid_spread(p)) return i;
        if (field.wide == &TableParams::max_bytes && !valid_max_bytes(p)) return i;
        const bool lags = p.consistency == DTRAIN_SSP;
        if (field.number == &TableParams::staleness && p.staleness > 0 && !lags) return i;
        const bool counts = p.consistency == DTRAIN_QUORUM;
        if (field.number == &TableParams::quorum && (p.quorum > 0) != counts) return i;
        if (field.number == &TableParams::reproducible && p.reproducible > collects(p)) return i;
        if (field.number == &TableParams::storage_dtype && !valid_storage(p)) return i;
        if (field.number == &TableParams::wire_dtype && !valid_narrow(p, p.wire_dtype)) return i;
        if (field.number == &TableParams::not_finite && !valid_not_finite(p)) return i;
        if (field.number == &TableParams::steps && !valid_steps(p)) return i;
        if (field.number == &TableParams::mean_over && !valid_mean(p)) return i;
        if (field.number == &TableParams::schedule && !valid_schedule(p)) return i;
        if (field.wide == &TableParams::warmup_steps && p.warmup_steps > 0 && !has_rate(p))
            return i;
        const bool decays = p.schedule != DTRAIN_SCHEDULE_CONSTANT;
        if (field.wide == &TableParams::decay_steps && (p.decay_steps > 0) != decays) return i;
        if (field.real == &TableParams::decay && !valid_decay(p)) return i;
        if (field.real == &TableParams::accumulator && !valid_accumulator(p)) return i;
        if (field.number == &TableParams::memory && !valid_memory(p)) return i;
        if (field.real == nullptr) continue;
        if (!valid_real(field, p.*field.real) || !valid_for_rule(field, p)) return i;
    }
    if (!valid_rate(p, p.learning_rate)) return rate_field;
    if (!fits(p.initial, p.dtype)) return rate_field + 5;
    if (!valid_function(p)) return function_field;
    if (bad_placement(p) != nullptr) return placement_field;
    return field_count;
}

// 32 bits of staleness, 24 of quorum, 4 of consistency, 1 of reproducible.
uint64_t mode_bits(const TableParams &p) {
    return p.staleness | uint64_t{p.quorum & 0xffffff} << 32 | uint64_t{p.consistency & 15} << 56 |
           uint64_t{p.reproducible & 1} << 60;
}

void take_mode(uint64_t bits, TableParams &p) {
    p.staleness = static_cast<uint32_t>(bits);
    p.quorum = static_cast<uint32_t>(bits >> 32 & 0xffffff);
    p.consistency = static_cast<uint32_t>(bits >> 56 & 15);
    p.reproducible = static_cast<uint32_t>(bits >> 60 & 1);
}

std::string_view consistency_name(uint32_t consistency) {
    constexpr std::string_view names[] = {"?", "ASYNC", "BSP", "SSP", "QUORUM"};
    return names[consistency < std::size(names) ? consistency : 0];
}

std::string mode_text(uint64_t bits) {
    TableParams params;
    take_mode(bits, params);
    std::string text(consistency_name(params.consistency));
    if (params.consistency == DTRAIN_SSP)
        text += " with staleness " + std::to_string(params.staleness);
    if (params.consistency == DTRAIN_QUORUM) text += " of " + std::to_string(params.quorum);
    return params.reproducible != 0 ? text + ", reproducible" : text;
}

uint32_t first_unfit_field(const TableParams &p, uint32_t workers) {
    const bool all = p.consistency != DTRAIN_QUORUM || p.quorum == workers;
    for (uint32_t i = 0; i < field_count; ++i) {
        const Field &field = fields_of_table[i];
        if (field.number == &TableParams::quorum && p.quorum > workers) return i;
        if (field.number == &TableParams::reproducible && p.reproducible != 0 && !all) return i;
    }
    return field_count;
}

std::string invalid_text(uint32_t field) {
    return std::string(field_name(field)) + " is not valid" + hint(field);
}

} // namespace dtrain::ps
