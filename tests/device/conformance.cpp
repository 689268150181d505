// Compiled once, for all plugins.
// SPDX-License-Identifier: Apache-2.0
#include "conformance.h"

#include "cases_fork.h"
#include "cases_memory.h"
#include "cases_queues.h"
#include "cases_rows.h"
#include "cases_rules.h"
#include "cases_sharing.h"
#include "cases_table.h"
#include "cases_work.h"

#include <dlfcn.h>

namespace dtrain::test {

Subject subject;

namespace {
void leave_out(void **why) {
    print_message("%s\n", static_cast<const char *>(*why));
    skip();
}
} // namespace

const dtrain_dv_plugin_t *load(const char *path) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = handle != nullptr ? dlsym(handle, "dtrain_device_query") : nullptr;
    if (symbol == nullptr) {
        print_error("%s\n", dlerror());
        return nullptr;
    }
    return reinterpret_cast<decltype(&dtrain_device_query)>(symbol)(DTRAIN_DV_ABI);
}

int run_conformance(std::span<const CMUnitTest> own) {
    std::vector<CMUnitTest> all;
    const auto add = [&all](std::span<const CMUnitTest> cases) {
        all.insert(all.end(), cases.begin(), cases.end());
    };
    add(table_cases);
    add(memory_cases);
    add(queue_cases);
    add(work_cases);
    add(row_cases);
    add(rule_cases);
    add(sharing_cases);
    add(fork_cases);
    add(own);
    for (CMUnitTest &test : all)
        if (const auto found = subject.left_out.find(test.name); found != subject.left_out.end())
            test = {test.name, leave_out, nullptr, nullptr, const_cast<char *>(found->second)};
    return _cmocka_run_group_tests(subject.plugin->name, all.data(), all.size(), nullptr, nullptr);
}

} // namespace dtrain::test
