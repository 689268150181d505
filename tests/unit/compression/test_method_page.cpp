// The tables of methods in docs/COMPRESSION.md are what the descriptors say.
// SPDX-License-Identifier: Apache-2.0
#include "compression/method_info.h"
#include "dtrain_names.h"
#include "table_of_page.h"

using namespace dtrain::compression;

namespace {

#define DTRAIN_NUMBER(NAME, name) DTRAIN_COMPRESS_##NAME,
constexpr uint32_t all_kinds[] = {DTRAIN_EACH_COMPRESS(DTRAIN_NUMBER)};

void the_page_has_every_method(void **) {
    std::string choices, formulas;
    for (uint32_t kind : all_kinds) {
        const MethodInfo &info = *find_method(kind);
        const std::string name = "| `" + upper(info.name) + "` | ";
        choices += name + info.bytes + " | " + info.cost + " | " + info.use + " |\n";
        formulas += name + info.formula + " | " + info.source + " |\n";
    }
    expect_table("docs/COMPRESSION.md",
                 "| | bytes sent, relative to f32 | cost per element | use it when |\n"
                 "|---|---|---|---|\n",
                 choices);
    expect_table("docs/COMPRESSION.md", "| method | what is sent | source |\n|---|---|---|\n",
                 formulas);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(the_page_has_every_method)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
