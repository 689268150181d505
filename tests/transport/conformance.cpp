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

} // namespace

int run_conformance(std::span<const CMUnitTest> own) {
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
    for (CMUnitTest &test : all)
        if (const auto found = subject.left_out.find(test.name); found != subject.left_out.end())
            test = {test.name, leave_out, nullptr, nullptr, const_cast<char *>(found->second)};
    return _cmocka_run_group_tests(subject.plugin->name, all.data(), all.size(), nullptr, nullptr);
}

} // namespace dtrain::test
