// Takes the caller's parameters of a table, fills in defaults, and refuses parameters that would
// have no effect.
// SPDX-License-Identifier: Apache-2.0
#include "ps/table/file_name.h"
#include "ps/table/protocol.h"
#include "ps/table/rules.h"
#include "ps/table/table_fields.h"
#include "ps/table/table_segments.h"

#include <algorithm>
#include <utility>

namespace dtrain::ps {
namespace {

using Given = dtrain_table_params_t;

// File names have at most 255 bytes, and "-00000-of-00001.safetensors.tmp" follows the name.
constexpr size_t max_file_name = 224;

// The first given number that the rule does not have, or nullptr.
const char *idle_number(const Given &given) {
    const uint32_t rule = given.rule != 0 ? given.rule : uint32_t{DTRAIN_RULE_ADD};
    if (!rule_known(rule)) return nullptr;
    uint32_t takes = rule_info(rule).takes;
    if (given.segment_count > 0) takes |= DTRAIN_GIVEN_LEARNING_RATE;
    for (const Field &field : fields_of_table)
        if (field.bit != 0 && (takes & field.bit) == 0 &&
            was_given(given.*field.given, field.bit, given.given))
            return field.name;
    return nullptr;
}

} // namespace

Given to_given(const TableParams &p) {
    Given given = {};
    given.struct_size = sizeof given;
    given.dtype = p.dtype;
    given.length = p.length;
    given.rule = p.rule;
    given.consistency = p.consistency;
    given.staleness = p.staleness;
    given.aggregate = p.aggregate;
    given.row_length = p.row_length;
    given.dim = p.dim;
    given.distribution = p.distribution;
    given.seed = p.seed;
    given.max_bytes = p.max_bytes;
    given.quorum = p.quorum;
    given.reproducible = p.reproducible;
    given.storage_dtype = p.storage_dtype;
    given.wire_dtype = p.wire_dtype;
    given.not_finite = p.not_finite;
    given.steps = p.steps;
    given.mean_over = p.mean_over;
    given.schedule = p.schedule;
    given.warmup_steps = p.warmup_steps;
    given.decay_steps = p.decay_steps;
    given.memory = p.memory;
    for (const Field &field : fields_of_table)
        if (field.real != nullptr) given.*field.given = p.*field.real;
    given.given = every_number;
    if (has_function(p)) given.function = p.function.c_str();
    given.placement = p.placement.policy;
    return given;
}

Status resolve(const dtrain_table_params_t &given, std::string_view name, TableParams &params) {
    if (name.empty() || name.size() > max_name)
        return fail(DTRAIN_ERR_INVALID, "table_create: the name has %zu bytes, 1 to %u are allowed",
                    name.size(), max_name);
    if (const size_t bytes = escaped(std::string(name)).size(); bytes > max_file_name)
        return fail(DTRAIN_ERR_INVALID,
                    "table_create: the name has %zu bytes, and %zu in the names of checkpoint "
                    "files, where each byte that is not a letter, a digit, '_', '-' or '.' counts "
                    "three; %zu are allowed",
                    name.size(), bytes, max_file_name);
    if ((given.given & ~every_number) != 0)
        return fail(DTRAIN_ERR_INVALID, "table_create \"%.*s\": given is 0x%x; known are 0x%x",
                    static_cast<int>(name.size()), name.data(), given.given, every_number);
    if (const char *idle = idle_number(given); idle != nullptr)
        return fail(DTRAIN_ERR_INVALID,
                    "table_create \"%.*s\": %s is given, which %s%s does not have",
                    static_cast<int>(name.size()), name.data(), idle,
                    given.segment_count > 0 ? "a table with segments" : "the rule ",
                    given.segment_count > 0 ? "" : rule_info(std::max(given.rule, 1u)).name);
    TableParams p;
    auto take = [](auto value, auto &field) {
        if (value != 0) field = value;
    };
    p.length = given.length;
    p.dtype = given.dtype;
    p.staleness = given.staleness;
    p.row_length = given.row_length;
    p.dim = given.dim;
    p.seed = given.seed;
    p.max_bytes = given.max_bytes;
    if (given.function != nullptr) p.function = given.function;
    p.quorum = given.quorum;
    p.reproducible = given.reproducible;
    if (given.storage_dtype != given.dtype) p.storage_dtype = given.storage_dtype;
    if (given.wire_dtype != given.dtype) p.wire_dtype = given.wire_dtype;
    take(given.rule, p.rule);
    take(given.consistency, p.consistency);
    take(given.aggregate, p.aggregate);
    take(given.distribution, p.distribution);
    take(given.not_finite, p.not_finite);
    take(given.steps, p.steps);
    take(given.mean_over, p.mean_over);
    take(given.schedule, p.schedule);
    p.warmup_steps = given.warmup_steps;
    p.decay_steps = given.decay_steps;
    if (given.memory != DTRAIN_MEM_HOST) p.memory = given.memory;
    if (rule_known(p.rule)) {
        p.learning_rate = rule_info(p.rule).rate;
        p.epsilon = rule_info(p.rule).epsilon;
        p.beta1 = rule_info(p.rule).beta1;
        p.beta2 = rule_info(p.rule).beta2;
    }
    for (const Field &field : fields_of_table)
        if (field.real != nullptr && was_given(given.*field.given, field.bit, given.given))
            p.*field.real = given.*field.given;
    if (rule_known(p.rule) && p.row_length == 0 && takes_norms(p)) p.row_length = p.length;
    if (const char *why = unfit_for_device(p); p.memory == DTRAIN_MEM_CUDA && why != nullptr)
        return fail(DTRAIN_ERR_UNSUPPORTED,
                    "table_create \"%.*s\": memory is a GPU's, but %s; leave memory 0",
                    static_cast<int>(name.size()), name.data(), why);
    if (given.segment_count > 0)
        if (Status s = resolve_segments(given, p); s != DTRAIN_OK)
            return fail_within(s, "table_create \"%.*s\"", static_cast<int>(name.size()),
                               name.data());
    resolve_placement(given, p);
    uint32_t bad = first_bad_field(p);
    if (bad == placement_field)
        return fail(DTRAIN_ERR_INVALID, "table_create \"%.*s\": %s", static_cast<int>(name.size()),
                    name.data(), bad_placement(p));
    if (bad != field_count)
        return fail(DTRAIN_ERR_INVALID, "table_create \"%.*s\": %s", static_cast<int>(name.size()),
                    name.data(), invalid_text(bad).c_str());
    params = std::move(p);
    return DTRAIN_OK;
}

} // namespace dtrain::ps
