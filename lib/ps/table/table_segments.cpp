// Fills in and checks the segments of a table.
// SPDX-License-Identifier: Apache-2.0
#include "ps/table/table_segments.h"

#include "ps/table/rules.h"
#include "ps/table/table_fields.h"

namespace dtrain::ps {

#define REAL(name, bit)                                                                            \
    { &Segment::name, &TableParams::name, &dtrain_segment_t::name, #name, bit }
#define NUMBER(name, bit) REAL(name, DTRAIN_GIVEN_##bit)
constexpr SegmentField fields_of_segment[segment_field_count] = {
    NUMBER(learning_rate, LEARNING_RATE),
    NUMBER(momentum, MOMENTUM),
    NUMBER(beta1, BETA1),
    NUMBER(beta2, BETA2),
    NUMBER(epsilon, EPSILON),
    NUMBER(rho, RHO),
    REAL(clip_value, 0),
    REAL(clip_norm, 0),
    REAL(weight_decay, 0),
    REAL(l1, 0),
    REAL(l2, 0),
    NUMBER(trust, TRUST),
    NUMBER(ftrl_beta, FTRL_BETA),
    NUMBER(accumulator, ACCUMULATOR)};
#undef NUMBER
#undef REAL

namespace {

constexpr uint32_t numbers_of_segments = every_number & ~DTRAIN_GIVEN_COMPENSATION;

uint64_t row_of(const TableParams &table) {
    return is_sparse(table) ? table.dim : table.row_length;
}

bool may_have(uint64_t rule) {
    return rule <= UINT32_MAX && rule_known(uint32_t(rule)) && rule != DTRAIN_RULE_FUNCTION &&
           !rule_info(uint32_t(rule)).is(RuleInfo::backs_up);
}

bool tiles(const TableParams &table, size_t segment) {
    const Segment &its = table.segments[segment];
    uint64_t due = 0;
    if (segment > 0) due = table.segments[segment - 1].first + table.segments[segment - 1].count;
    return its.first == due && its.count > 0 && its.count <= row_of(table) - due;
}

} // namespace

TableParams segment_params(const TableParams &table, const Segment &segment) {
    TableParams params = table;
    params.segments.clear();
    params.placement = {};
    params.storage_dtype = params.wire_dtype = 0; // whole rows are converted, not segments
    params.steps = DTRAIN_STEPS_OWN;              // the table handles steps, mean and schedule
    params.mean_over = DTRAIN_MEAN_WORKERS;
    params.schedule = DTRAIN_SCHEDULE_CONSTANT;
    params.warmup_steps = params.decay_steps = 0;
    params.decay = 0;
    params.memory = 0; // it is the table's
    params.rule = uint32_t(segment.rule);
    for (const SegmentField &real : fields_of_segment) params.*real.table = segment.*real.own;
    if (is_sparse(table)) {
        params.dim = uint32_t(segment.count);
    } else {
        params.length = table.length / table.row_length * segment.count;
        params.row_length = segment.count;
    }
    return params;
}

bool valid_segments(const TableParams &table) {
    if (table.segments.size() > DTRAIN_SEGMENTS || table.rule != DTRAIN_RULE_ADD) return false;
    if (!is_sparse(table) && table.row_length == 0) return false;
    uint64_t end = 0;
    for (size_t i = 0; i < table.segments.size(); ++i) {
        const Segment &its = table.segments[i];
        if (!may_have(its.rule) || !tiles(table, i)) return false;
        TableParams params = segment_params(table, its);
        if (first_bad_field(params) != field_count) return false;
        end = its.first + its.count;
    }
    return end == row_of(table);
}

Status resolve_segments(const dtrain_table_params_t &given, TableParams &table) {
    auto wrong = [](uint32_t number, const char *what, uint64_t is, uint64_t due) {
        return fail(DTRAIN_ERR_INVALID, "segment %u: %s %llu where %llu is expected", number, what,
                    static_cast<unsigned long long>(is), static_cast<unsigned long long>(due));
    };
    if (given.rule != 0)
        return fail(DTRAIN_ERR_INVALID, "a table with segments has no rule of its own; set its "
                                        "rule to 0");
    if (!is_sparse(table) && (table.row_length == 0 || table.length % table.row_length != 0))
        return fail(DTRAIN_ERR_INVALID, "segments are columns of rows: give a dim, or a row_length "
                                        "that divides the length");
    if (!was_given(given.learning_rate, DTRAIN_GIVEN_LEARNING_RATE, given.given))
        table.learning_rate = 1;
    uint64_t end = 0;
    for (uint32_t i = 0; i < given.segment_count; ++i) {
        const dtrain_segment_t &its = given.segments[i];
        Segment segment;
        segment.first = its.first;
        segment.count = its.count;
        segment.rule = its.rule;
        if (its.first != end) return wrong(i, "its first column is", its.first, end);
        if (its.count == 0) return wrong(i, "its columns are", 0, 1);
        if (its.count > row_of(table) - end)
            return wrong(i, "its columns are", its.count, row_of(table) - end);
        end += its.count;
        if (!may_have(its.rule))
            return fail(DTRAIN_ERR_INVALID, "segment %u: rule %u cannot be used for segments", i,
                        its.rule);
        if (counts_by_table(table) && rule_info(its.rule).is(RuleInfo::own_steps))
            return fail(DTRAIN_ERR_INVALID,
                        "segment %u: the rule %s counts its own updates, and steps is TABLE", i,
                        rule_info(its.rule).name);
        segment.learning_rate = rule_info(its.rule).rate;
        segment.epsilon = rule_info(its.rule).epsilon;
        segment.beta1 = rule_info(its.rule).beta1;
        segment.beta2 = rule_info(its.rule).beta2;
        if ((its.given & ~numbers_of_segments) != 0 || its.reserved != 0)
            return fail(DTRAIN_ERR_INVALID,
                        "segment %u: given is 0x%x (known are 0x%x), reserved %u", i, its.given,
                        numbers_of_segments, its.reserved);
        for (const SegmentField &real : fields_of_segment) {
            if (!was_given(its.*real.given, real.bit, its.given)) continue;
            if (real.bit != 0 && (rule_info(its.rule).takes & real.bit) == 0)
                return fail(DTRAIN_ERR_INVALID,
                            "segment %u: %s is given, which the rule %s does not have", i,
                            real.name, rule_info(its.rule).name);
            segment.*real.own = its.*real.given;
        }
        table.segments.push_back(segment);
        const uint32_t bad = first_bad_field(segment_params(table, segment));
        if (bad != field_count)
            return fail(DTRAIN_ERR_INVALID, "segment %u: %s", i, invalid_text(bad).c_str());
    }
    if (end == row_of(table)) return DTRAIN_OK;
    return wrong(given.segment_count, "it is missing; the segments end before column", end,
                 row_of(table));
}

std::string segments_title(const TableParams &params) {
    std::string title;
    for (const Segment &segment : params.segments)
        title += (title.empty() ? "" : " ") + std::string(rule_info(uint32_t(segment.rule)).name) +
                 ":" + std::to_string(segment.count);
    return title;
}

} // namespace dtrain::ps
