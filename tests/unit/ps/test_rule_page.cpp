// The table of rules in docs/PARAMETER_SERVER.md is what the descriptors say.
// SPDX-License-Identifier: Apache-2.0
#include "ps/rules/registry.h"
#include "table_of_page.h"

using namespace dtrain::ps;

namespace {

std::string state_of(const RuleInfo &info) {
    std::string state;
    for (uint32_t i = 0; i < info.slot_count(); i++)
        state += (i > 0 ? ", `" : "`") + std::string(info.slots[i]) + "`";
    if (info.is(RuleInfo::row_state)) state += ", one per row";
    if (info.counts()) state += state.empty() ? "`steps`" : ", `steps`";
    if (info.is(RuleInfo::counts_rows)) state += " per row";
    return state.empty() ? "-" : state;
}

void the_page_has_every_rule(void **) {
    std::string rows;
    for (uint32_t rule : builtin_rules()) {
        const RuleInfo &info = rule_info(rule);
        rows += "| `" + upper(info.name) + "` | " + state_of(info) + " | " + info.formula + " | " +
                info.source + " |\n";
    }
    expect_table("docs/PARAMETER_SERVER.md",
                 "| rule | state | update | source |\n|---|---|---|---|\n", rows);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(the_page_has_every_rule)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
