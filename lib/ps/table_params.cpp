// SPDX-License-Identifier: Apache-2.0
#include "ps/table_params.h"

#include "device/kernels.h"
#include "ps/dtype.h"
#include "ps/protocol.h"

#include <bit>
#include <cmath>

namespace dtrain::ps {
namespace {

constexpr const char *names[field_count + 1] = {
    "length",   "dtype", "rule",  "consistency", "staleness", "aggregate", "learning_rate",
    "momentum", "beta1", "beta2", "epsilon",     "initial",   "name"};

constexpr uint64_t max_bytes = uint64_t{1} << 56; // of a table's values

bool fits(double value, uint32_t dtype) {
    if (is_float(dtype)) return std::isfinite(value);
    return visit_dtype(dtype, [&]<class T>() {
        // Both bounds are exact doubles: 2^bits is, where 2^bits - 1 may not be.
        double above = std::ldexp(1.0, std::numeric_limits<T>::digits);
        double below = std::is_signed_v<T> ? -above : 0.0;
        return value == std::trunc(value) && value >= below && value < above;
    });
}

bool fraction(double beta) { return beta >= 0 && beta < 1; }

} // namespace

bool is_float(uint32_t dtype) { return dtype >= DTRAIN_F32 && dtype <= DTRAIN_BF16; }

const char *field_name(uint64_t field) { return field <= name_field ? names[field] : "?"; }

TableFields to_fields(const TableParams &p) {
    auto bits = [](double value) { return std::bit_cast<uint64_t>(value); };
    return {p.length,
            p.dtype,
            p.rule,
            p.consistency,
            p.staleness,
            p.aggregate,
            bits(p.learning_rate),
            bits(p.momentum),
            bits(p.beta1),
            bits(p.beta2),
            bits(p.epsilon),
            bits(p.initial)};
}

uint32_t from_fields(const TableFields &fields, TableParams &p) {
    for (uint32_t i = 1; i <= 5; ++i)
        if (fields[i] > UINT32_MAX) return i;
    auto number = [&](uint32_t i) { return static_cast<uint32_t>(fields[i]); };
    auto real = [&](uint32_t i) { return std::bit_cast<double>(fields[i]); };
    p = {fields[0], number(1), number(2), number(3), number(4), number(5),
         real(6),   real(7),   real(8),   real(9),   real(10),  real(11)};
    return first_bad_field(p);
}

uint32_t first_bad_field(const TableParams &p) {
    uint64_t size = device::dtype_size(p.dtype);
    bool optimizer = p.rule > DTRAIN_RULE_ASSIGN;
    // In the order of the fields.
    const bool good[field_count] = {
        p.length > 0 && p.length <= max_bytes / 8,
        size != 0,
        p.rule >= DTRAIN_RULE_ADD && p.rule <= DTRAIN_RULE_ADAM &&
            (!optimizer || is_float(p.dtype)),
        p.consistency >= DTRAIN_ASYNC && p.consistency <= DTRAIN_SSP,
        true,
        p.aggregate == DTRAIN_SUM || p.aggregate == DTRAIN_AVG,
        std::isfinite(p.learning_rate),
        std::isfinite(p.momentum),
        fraction(p.beta1),
        fraction(p.beta2),
        std::isfinite(p.epsilon) && p.epsilon >= 0,
        size == 0 || fits(p.initial, p.dtype),
    };
    for (uint32_t i = 0; i < field_count; ++i)
        if (!good[i]) return i;
    return field_count;
}

Status resolve(const dtrain_table_params_t &given, std::string_view name, TableParams &params) {
    if (name.empty() || name.size() > max_name)
        return fail(DTRAIN_ERR_INVALID, "table_create: the name has %zu bytes, 1 to %u are allowed",
                    name.size(), max_name);
    TableParams p;
    auto take = [](auto value, auto &field) {
        if (value != 0) field = value;
    };
    p.length = given.length;
    p.dtype = given.dtype;
    p.staleness = given.staleness;
    p.initial = given.initial;
    take(given.rule, p.rule);
    take(given.consistency, p.consistency);
    take(given.aggregate, p.aggregate);
    take(given.learning_rate, p.learning_rate);
    take(given.momentum, p.momentum);
    take(given.beta1, p.beta1);
    take(given.beta2, p.beta2);
    take(given.epsilon, p.epsilon);
    uint32_t bad = first_bad_field(p);
    if (bad < field_count)
        return fail(DTRAIN_ERR_INVALID, "table_create '%.*s': %s is not valid%s",
                    static_cast<int>(name.size()), name.data(), field_name(bad),
                    bad == 2 ? " (optimizers need a floating-point table)" : "");
    params = p;
    return DTRAIN_OK;
}

} // namespace dtrain::ps
