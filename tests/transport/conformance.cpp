// Compiled once, for all transports.
// SPDX-License-Identifier: Apache-2.0
#include "conformance.h"

#include "cases_connect.h"
#include "cases_events.h"
#include "cases_flow.h"
#include "cases_loss.h"
#include "cases_matching.h"
#include "cases_memory.h"
#include "cases_messages.h"
#include "cases_remote.h"
#include "cases_table.h"
#include "cases_threads.h"
#include "cases_withdraw.h"

namespace dtrain::test {
namespace {

void leave_out(void **why) {
    print_message("%s\n", static_cast<const char *>(*why));
    skip();
}

void all_connections_are_protected(void **) {
    const Pair pair;
    const auto level = uint32_t(subject.demand.inside);
    assert_int_equal(pair.a.host.level, level);
    assert_int_equal(pair.b.host.level, level);
    assert_true(pair.a.attr.caps & DTRAIN_TP_CAP_GUARDED);
    assert_false(pair.a.attr.caps & (DTRAIN_TP_CAP_PUT | DTRAIN_TP_CAP_GET));
}
constexpr CMUnitTest protection_cases[] = {cmocka_unit_test(all_connections_are_protected)};

// Whether the environment says so; for all nodes then.
bool protect_all() {
    const char *level = getenv("DTRAIN_TEST_PROTECTION");
    if (!level) return false;
    const bool encrypted = strcmp(level, "encrypted") == 0;
    subject.secret = "a secret";
    subject.demand = encrypted ? protection::Level::encrypted : protection::Level::integrity;
    subject.options["protection"] = level;
    subject.copies_messages = true;
    return true;
}

} // namespace

int run_conformance(std::span<const CMUnitTest> own) {
    const bool is_protected = protect_all();
    std::vector<CMUnitTest> all;
    const auto add = [&all](std::span<const CMUnitTest> cases) {
        all.insert(all.end(), cases.begin(), cases.end());
    };
    add(table_cases);
    add(connect_cases);
    add(message_cases);
    add(matching_cases);
    add(memory_cases);
    add(flow_cases);
    add(event_cases);
    add(loss_cases);
    add(thread_cases);
    add(remote_cases);
    add(withdraw_cases);
    add(own);
    if (is_protected) add(protection_cases);
    for (CMUnitTest &test : all)
        if (const auto found = subject.left_out.find(test.name); found != subject.left_out.end())
            test = {test.name, leave_out, nullptr, nullptr, const_cast<char *>(found->second)};
    return _cmocka_run_group_tests(subject.plugin->name, all.data(), all.size(), nullptr, nullptr);
}

} // namespace dtrain::test
