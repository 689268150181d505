// Registered memory over verbs, the libfabric transport's provider "verbs;ofi_rxm": what is copied,
// and memory that is freed and mapped again. SPDX-License-Identifier: Apache-2.0
#include "transport/cases_memory.h"
#include "transport/loaded.h"

using namespace dtrain::test;

int main() {
    subject.plugin = load("ofi");
    if (!subject.plugin) return 1;
    subject.options["ofi.provider"] = "verbs;ofi_rxm";
    subject.copies_messages = false;
    if (const char *only = getenv("DTRAIN_TEST_CASE")) cmocka_set_test_filter(only);
    return cmocka_run_group_tests_name("memory", memory_cases, nullptr, nullptr);
}
