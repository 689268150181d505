// TFRecord files when the power goes while one is replaced: it has the old records or the new ones,
// and once its writer was closed, the new ones.
// SPDX-License-Identifier: Apache-2.0
#include "files.h"

#include "crash/replaced_file.h"

using namespace dtrain;

namespace {

std::string read_all(const std::string &folder) {
    data::Reader reader;
    std::vector<std::string> records;
    if (open_all(reader, {folder + "/a"}) != DTRAIN_OK) return error_text();
    if (drain(reader, records) != DTRAIN_ERR_NOT_FOUND) return error_text();
    std::string all;
    for (const std::string &record : records) all += record + ",";
    return all;
}

void records_are_replaced(void **) {
    crash::ReplacedFile file(read_all);
    const std::string path = file.folder() + "/a";
    write_records(path, {"old", "older"});
    file.replace([&] { write_records(path, std::vector<std::string>(40, std::string(60, 'n'))); });
    crash::Counts counts;
    assert_string_equal(file.crash_at_each(file.log(), counts).c_str(), "");
    print_message("%llu states\n", static_cast<unsigned long long>(counts.states));
    assert_true(counts.states > 50);
    assert_string_not_equal(file.crash_at_each(without_syncs(file.log()), counts).c_str(), "");
}

} // namespace

int main() {
    if (!crash::Traced::works()) return std::puts(crash::Traced::skipped), 77;
    const CMUnitTest tests[] = {cmocka_unit_test(records_are_replaced)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
