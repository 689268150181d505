// Applies the rules of segments to rows, and combines pushes.
// SPDX-License-Identifier: Apache-2.0
#include "ps/optimizer/segment_rules.h"

#include "device/kernels.h"

#include <algorithm>
#include <cstring>

namespace dtrain::ps {
namespace {

uint64_t size_of(const TableParams &table) { return device::dtype_size(computed_dtype(table)); }

} // namespace

SegmentRules::SegmentRules(const TableParams &table) {
    for (const Segment &segment : table.segments) {
        const RuleInfo &info = rule_info(uint32_t(segment.rule));
        parts_.push_back({UpdateRule(segment_params(table, segment)), segment.learning_rate,
                          segment.first * size_of(table), segment.first, segment.count,
                          info.slot_count()});
    }
    set_rate(table.learning_rate);
}

void SegmentRules::set_rate(double factor) {
    for (Part &part : parts_) part.rule.set_rate(part.rate * factor);
}

void SegmentRules::apply(uint64_t number, char *row, char *const *slots, const char *g) const {
    for (const Part &part : parts_) {
        RuleTarget target = {row + part.at, {}};
        std::copy_n(slots, part.slots, target.slots);
        part.rule.apply(number, target, g + part.at, part.count);
        slots += part.slots;
    }
}

void combine(const TableParams &table, uint32_t dtype, void *to, const void *from,
             uint64_t elements) {
    if (!is_segmented(table))
        return device::reduce(to, from, elements, dtype, rule_info(table.rule).combine);
    const uint64_t size = device::dtype_size(dtype);
    const uint64_t row = table.segments.back().first + table.segments.back().count;
    for (uint64_t at = 0; at < elements; at += row)
        for (const Segment &segment : table.segments)
            device::reduce(static_cast<char *>(to) + (at + segment.first) * size,
                           static_cast<const char *>(from) + (at + segment.first) * size,
                           segment.count, dtype, rule_info(uint32_t(segment.rule)).combine);
}

void combine_repeated(const TableParams &table, uint32_t dtype, void *row, const void *again) {
    const uint64_t size = device::dtype_size(dtype);
    if (!is_segmented(table)) {
        if (table.rule == DTRAIN_RULE_ASSIGN)
            std::memcpy(row, again, table.dim * size);
        else
            combine(table, dtype, row, again, table.dim);
        return;
    }
    combine(table, dtype, row, again, table.dim);
    for (const Segment &segment : table.segments)
        if (segment.rule == DTRAIN_RULE_ASSIGN)
            std::memcpy(static_cast<char *>(row) + segment.first * size,
                        static_cast<const char *>(again) + segment.first * size,
                        segment.count * size);
}

} // namespace dtrain::ps
