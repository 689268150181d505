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
    " (it is the dtype, or F16, BF16 or I8 where that is F32; I8 needs rows of 2 and more)";

} // namespace

constexpr Field fields_of_table[field_count] = {
    wide_field("length", &TableParams::length),
    number_field("dtype", &TableParams::dtype),
    number_field(
        "rule", &TableParams::rule,
        " (most need a floating-point table, DC_SGD also a dense one that is ASYNC or SSP)"),
    number_field("consistency", &TableParams::consistency),
    number_field("staleness", &TableParams::staleness, " (SSP has one, other modes none)"),
    number_field("aggregate", &TableParams::aggregate),
    NUMBER(learning_rate, not_negative, "0 or more, FTRL more", LEARNING_RATE),
    NUMBER(momentum, fraction, "0 or more and less than 1", MOMENTUM),
    NUMBER(beta1, fraction, "0 or more and less than 1", BETA1),
    NUMBER(beta2, fraction, "0 or more and less than 1", BETA2),
    NUMBER(epsilon, not_negative, "0 or more", EPSILON),
    REAL(initial, any),
    wide_field("row_length", &TableParams::row_length,
               " (it divides the length, and rows of which norms are taken have at most 256 KiB "
               "unless the table is BSP or QUORUM, and stored as its dtype)"),
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
                 " (a row and its key, or its state, have at most 256 KiB)"),
    number_field("distribution", &TableParams::distribution),
    REAL(spread, not_negative),
    wide_field("seed", &TableParams::seed),
    wide_field("max_bytes", &TableParams::max_bytes,
               " (it is for sparse tables, and must hold a row)"),
    number_field("quorum", &TableParams::quorum,
                 " (QUORUM has one, of 1 to all workers, other modes none)"),
    number_field("reproducible", &TableParams::reproducible,
                 " (0, or 1 where the pushes of all workers are summed: BSP, or a QUORUM of all)"),
    number_field(
        "storage_dtype", &TableParams::storage_dtype,
        " (it is the dtype; where that is F32 also F16, BF16 or I8, where it is F16 or BF16 "
        "F32; I8 needs rows of 2 and more)"),
    number_field("wire_dtype", &TableParams::wire_dtype, narrow_hint),
    number_field("not_finite", &TableParams::not_finite,
                 " (DTRAIN_NOT_FINITE_*; tables of integers have TAKE)"),
    number_field("steps", &TableParams::steps,
                 " (DTRAIN_STEPS_*; TABLE is for rules that count updates, but not for MEAN)"),
    NUMBER(accumulator, not_negative, "0 or more, and a number of the state's type", ACCUMULATOR),
    number_field("mean_over", &TableParams::mean_over,
                 " (DTRAIN_MEAN_*; PUSHERS is for sparse tables whose aggregate is AVG)"),
    number_field("schedule", &TableParams::schedule,
                 " (DTRAIN_SCHEDULE_*, of rules that have a learning rate)"),
    wide_field("warmup_steps", &TableParams::warmup_steps,
               " (it is for rules that have a learning rate)"),
    wide_field("decay_steps", &TableParams::decay_steps,
               " (a schedule that is not CONSTANT has 1 and more, other tables none)"),
    REAL_GIVEN(decay, not_negative,
               " (LINEAR and COSINE have 0 and more, EXPONENTIAL and STAIRCASE more than 0, other "
               "schedules none; FTRL divides by the rate, which must not come to 0)",
               0),
};
#undef NUMBER
#undef REAL
#undef REAL_GIVEN

namespace {

constexpr uint64_t most_bytes = uint64_t{1} << 56; // of a table's values

bool fits(double value, uint32_t dtype) {
    if (is_float(dtype)) return std::isfinite(value);
    return visit_dtype(dtype, [&]<class T>() {
        // Both bounds are exact doubles: 2^bits is, where 2^bits - 1 may not be.
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

// The largest number that a row may be made of.
uint64_t largest_number(const TableParams &p) {
    const bool state = rule_info(p.rule).slot_count() > 0 || is_segmented(p);
    return has_function(p)
               ? sizeof(uint64_t) // whatever state it keeps
               : std::max(device::dtype_size(p.dtype), size_t(state ? slot_size(p.dtype) : 0));
}

bool valid_rows(const TableParams &p) {
    if (is_sparse(p)) return p.row_length == 0; // rows are what it has
    if (p.row_length == 0) return !takes_norms(p);
    if (p.length % p.row_length != 0) return false;
    if (has_function(p) || is_segmented(p)) return p.row_length <= chunk_bytes / largest_number(p);
    bool fits_request = p.row_length <= chunk_bytes / device::dtype_size(p.dtype);
    const bool any_length = collects(p) && p.storage_dtype == 0; // else a row is widened at once
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

// Of which an f32 table may be made besides. A scale for each number would not be less.
bool valid_narrow(const TableParams &p, uint32_t dtype) {
    if (dtype == 0) return true;
    const bool known = dtype == DTRAIN_F16 || dtype == DTRAIN_BF16 || dtype == DTRAIN_I8;
    return p.dtype == DTRAIN_F32 && known &&
           (dtype != DTRAIN_I8 || (p.dim != 1 && p.row_length != 1));
}

// As f32, values of f16 and bf16 lose nothing of an update.
bool valid_storage(const TableParams &p) {
    const bool wide = p.storage_dtype == DTRAIN_F32 && is_half(p.dtype) && !has_function(p);
    return wide || valid_narrow(p, p.storage_dtype);
}

bool valid_aggregate(const TableParams &p) {
    bool own = rule_info(p.rule).combine != DTRAIN_SUM;
    return p.aggregate == DTRAIN_SUM || (p.aggregate == DTRAIN_AVG && !own);
}

// What changes an optimizer is there only for one.
bool valid_for_rule(const Field &field, const TableParams &p) {
    bool changes = field.real == &TableParams::clip_value ||
                   field.real == &TableParams::clip_norm ||
                   field.real == &TableParams::weight_decay || field.real == &TableParams::l1 ||
                   field.real == &TableParams::l2;
    return !changes || p.*field.real == 0 || rule_info(p.rule).is(RuleInfo::optimizer);
}

const char *hint(uint32_t field) {
    if (field < field_count) return fields_of_table[field].hint;
    if (field == segments_field || field == placement_field) return "";
    return " (with the rule FUNCTION 1 to 63 letters, digits, '_', '.' or '-', else NULL)";
}

} // namespace

TableParams::TableParams() = default;
TableParams::TableParams(const TableParams &) = default;
TableParams::TableParams(TableParams &&) noexcept = default;
TableParams &TableParams::operator=(TableParams &&) noexcept = default;
TableParams::~TableParams() = default;

bool is_float(uint32_t dtype) { return dtype >= DTRAIN_F32 && dtype <= DTRAIN_BF16; }

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
    // Integers, in the order of the fields; later ones rely on those before.
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
