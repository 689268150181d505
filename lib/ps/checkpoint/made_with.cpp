// Lists the parameters that a checkpoint records and compares.
// SPDX-License-Identifier: Apache-2.0
#include "ps/checkpoint/made_with.h"

#include "base/decimal.h"
#include "ps/table/rules.h"

namespace dtrain::ps {
namespace {

using Fields = std::vector<MadeWith>;

// Adds the constants of the rule of a table or a segment. Segments have no compensation.
template <class Params>
void put_constants(const Params &params, uint32_t rule, const std::string &prefix, Fields &out) {
    const RuleInfo &info = rule_info(rule);
    if (!info.is(RuleInfo::optimizer)) return;
    const std::pair<const char *, double> constants[] = {
        {"momentum", params.momentum},  {"beta1", params.beta1}, {"beta2", params.beta2},
        {"epsilon", params.epsilon},    {"rho", params.rho},     {"trust", params.trust},
        {"ftrl_beta", params.ftrl_beta}};
    for (const auto &[name, value] : constants) out.push_back({prefix + name, decimal_text(value)});
    out.push_back({prefix + "accumulator", decimal_text(params.accumulator), "0"});
    if (!info.is(RuleInfo::own_proximal)) return;
    out.push_back({prefix + "l1", decimal_text(params.l1)});
    out.push_back({prefix + "l2", decimal_text(params.l2)});
}

void put_number(const char *name, uint64_t value, uint64_t usual, Fields &out) {
    out.push_back({name, std::to_string(value), std::to_string(usual)});
}

} // namespace

Fields made_with(const TableParams &params) {
    Fields out;
    for (size_t i = 0; i < params.segments.size(); ++i)
        put_constants(params.segments[i], uint32_t(params.segments[i].rule),
                      "segment" + std::to_string(i) + ".", out);
    if (!is_segmented(params)) put_constants(params, params.rule, "", out);
    if (params.rule == DTRAIN_RULE_DC_SGD || has_function(params))
        out.push_back({"compensation", decimal_text(params.compensation)});
    put_number("steps", params.steps, DTRAIN_STEPS_OWN, out);
    if (is_sparse(params) || rounds_at_random(params))
        out.push_back({"seed", std::to_string(params.seed)});
    if (!is_sparse(params)) return out;
    out.push_back({"initial", decimal_text(params.initial)});
    out.push_back({"distribution", std::to_string(params.distribution)});
    out.push_back({"spread", decimal_text(params.spread)});
    return out;
}

} // namespace dtrain::ps
