// A table's parameters, item by item, with their names.
// SPDX-License-Identifier: Apache-2.0
#include "tables/statement.h"

#include "device/kernels.h"
#include "ps/table/rules.h"
#include "ps/table/table_fields.h"

#include <string>

namespace dtrain::tables {

using collectives::Agreement;

namespace {

template <class Numbers> std::string listed(const Numbers &numbers) {
    std::string text;
    for (const auto number : numbers) text += (text.empty() ? "" : " ") + std::to_string(number);
    return text;
}

void state_segment(const ps::Segment &segment, const std::string &which, Agreement &agreement) {
    agreement.add(which + "first", segment.first)
        .add(which + "count", segment.count)
        .add(which + "rule", ps::rule_info(uint32_t(segment.rule)).name);
    for (const ps::SegmentField &field : ps::fields_of_segment)
        agreement.add(which + field.name, segment.*field.own);
}

void state_field(const ps::TableParams &params, const ps::Field &field, Agreement &agreement) {
    if (field.number == &ps::TableParams::consistency)
        agreement.add(field.name, ps::consistency_name(params.consistency));
    else if (field.wide != nullptr)
        agreement.add(field.name, params.*field.wide);
    else if (field.number != nullptr)
        agreement.add(field.name, uint64_t(params.*field.number));
    else
        agreement.add(field.name, params.*field.real);
}

} // namespace

void state(const ps::TableParams &params, std::string_view name, Agreement &agreement) {
    agreement.add("name", name)
        .add("rule", ps::rule_info(params.rule).name)
        .add("dtype", device::dtype_name(params.dtype))
        .add("function", params.function);
    for (const ps::Field &field : ps::fields_of_table) state_field(params, field, agreement);
    agreement.add("segments", uint64_t(params.segments.size()));
    for (size_t i = 0; i < params.segments.size(); i++)
        state_segment(params.segments[i], "segment " + std::to_string(i) + " ", agreement);
    const ps::Placement &placement = params.placement;
    agreement.add("placement", uint64_t(placement.policy))
        .add("placement virtual_nodes", uint64_t(placement.virtual_nodes))
        .add("placement_block", placement.block)
        .add("key_count", placement.key_count)
        .add("split_bytes", placement.split_bytes)
        .add("placement weights", listed(placement.weights))
        .add("placement of blocks", listed(placement.owners));
}

} // namespace dtrain::tables
