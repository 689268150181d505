// The tuning file: what is written is read, and nothing else is believed.
// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"
#include "base/status.h"
#include "check.h"
#include "sample_tuning.h"
#include "temporary_folder.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

using namespace dtrain;
using namespace dtrain::collectives;

namespace {

// The text with another checksum, for what comes after it in the checks.
std::string sealed(std::string text) {
    text.resize(text.find("crc32c = "));
    char line[32];
    std::snprintf(line, sizeof line, "crc32c = %08x\n", crc32c(text.data(), text.size()));
    return text + line;
}

std::string replaced(std::string text, const std::string &what, const std::string &by) {
    size_t at = text.find(what);
    assert_true(at != std::string::npos);
    return text.replace(at, what.size(), by);
}

void what_is_written_is_read(void **) {
    std::string text = to_text(sample_tuning());
    assert_int_equal(text.find("dtrain-tuning 2\ncpu = Some CPU @ 2.50GHz\n"), 0);
    Tuning read;
    assert_int_equal(parse_tuning(text, read), DTRAIN_OK);
    assert_true(read.machine == sample_tuning().machine);
    assert_true(read.model.copy_ns_per_byte == sample_tuning().model.copy_ns_per_byte);
    assert_string_equal(to_text(read).c_str(), text.c_str());
}

void refused(const std::string &text, Status status, const char *why) {
    Tuning out;
    out.chunk_bytes = 77;
    assert_int_equal(parse_tuning(text, out), status);
    if (std::strstr(error_text(), why) == nullptr)
        fail_msg("\"%s\" lacks \"%s\"", error_text(), why);
    assert_int_equal(out.chunk_bytes, 77);
}

void what_is_refused(void **) {
    std::string text = to_text(sample_tuning());
    refused("", DTRAIN_ERR_CORRUPT, "not a tuning file");
    refused("hello\n", DTRAIN_ERR_CORRUPT, "not a tuning file");
    refused(std::string(5000, 'x'), DTRAIN_ERR_CORRUPT, "not a tuning file");
    refused(sealed(replaced(text, "tuning 2", "tuning 3")), DTRAIN_ERR_VERSION, "version 2");
    refused(replaced(text, "32768", "32767"), DTRAIN_ERR_CORRUPT, "checksum");
    refused(text + "\n", DTRAIN_ERR_CORRUPT, "checksum");
    for (const char *bad : {"nan", "inf", "-1", "1e300", "", "1 ", "0x10", "1,5"})
        refused(sealed(replaced(text, "latency_ns = 1234.5", std::string("latency_ns = ") + bad)),
                DTRAIN_ERR_CORRUPT, "\"latency_ns\" is not valid");
    refused(sealed(replaced(text, "131072", "16")), DTRAIN_ERR_CORRUPT,
            "\"chunk_bytes\" is not valid");
    refused(sealed(replaced(text, "65536", "16")), DTRAIN_ERR_CORRUPT,
            "\"eager_bytes\" is not valid");
    refused(sealed(replaced(text, "cores = 8", "cores = 0")), DTRAIN_ERR_CORRUPT, "\"cores\"");
    refused(sealed(replaced(text, "ranks = 16\n", "")), DTRAIN_ERR_CORRUPT, "\"ranks\" is missing");
    // Cut anywhere.
    for (size_t length = 0; length < text.size(); length++) {
        Tuning out;
        assert_int_equal(parse_tuning(text.substr(0, length), out), DTRAIN_ERR_CORRUPT);
    }
}

// Random changes: with the checksum as it was they are found; with a right one whatever is accepted
// is within bounds.
void random_changes(void **) {
    const char *given = std::getenv("DTRAIN_TEST_SEED");
    auto seed = given != nullptr ? uint32_t(std::strtoul(given, nullptr, 10)) : 20261121u;
    print_message("DTRAIN_TEST_SEED=%u\n", seed);
    std::mt19937 random(seed);
    const std::string text = to_text(sample_tuning());
    size_t accepted = 0;
    for (int i = 0; i < 20000; i++) {
        std::string changed = text;
        for (uint32_t n = random() % 4 + 1; n > 0; n--) {
            size_t at = random() % changed.size();
            switch (random() % 4) {
            case 0: changed[at] = char(random()); break;
            case 1: changed.erase(at, random() % 8); break;
            case 2:
                changed.insert(at, changed.substr(random() % changed.size(), random() % 40));
                break;
            case 3: changed[at] = "0123456789.e-\n ="[random() % 16]; break;
            }
            if (changed.empty()) changed = "\n";
        }
        Tuning out;
        if (changed != text) assert_true(parse_tuning(changed, out) != DTRAIN_OK);
        if (changed.find("crc32c = ") == std::string::npos) continue;
        if (parse_tuning(sealed(changed), out) != DTRAIN_OK) continue;
        accepted++;
        assert_true(out.model.latency_ns >= 0 && out.model.latency_ns <= 1e10);
        assert_true(out.chunk_bytes >= 4096 && out.eager_bytes >= 1024 && out.machine.ranks >= 2);
        assert_true(!out.machine.cpu.empty() && out.machine.cpu.size() <= 256);
    }
    assert_true(accepted > 100); // the checksum is not all that is looked at
}

void what_differs_is_named(void **) {
    Machine here = sample_tuning().machine;
    assert_string_equal(difference(here, here).c_str(), "");
    here.cpu = "Another";
    here.ranks = 4;
    assert_string_equal(difference(sample_tuning().machine, here).c_str(),
                        "cpu \"Some CPU @ 2.50GHz\" there, \"Another\" here; ranks \"16\" there, "
                        "\"4\" here");
}

void files(void **) {
    TemporaryFolder folder;
    const std::string path = folder.file("file");
    Tuning read, odd = sample_tuning();
    assert_int_equal(read_tuning(path.c_str(), read), DTRAIN_ERR_NOT_FOUND);
    odd.machine.cpu = "two\nlines\x01";
    assert_int_equal(write_tuning(path.c_str(), odd), DTRAIN_OK);
    assert_int_equal(read_tuning(path.c_str(), read), DTRAIN_OK);
    assert_string_equal(read.machine.cpu.c_str(), "two lines ");
    assert_int_equal(read_tuning(folder.name.c_str(), read), DTRAIN_ERR_IO);
    assert_int_equal(read_tuning("/dev/zero", read), DTRAIN_ERR_CORRUPT);
    assert_int_equal(write_tuning((path + "/no").c_str(), odd), DTRAIN_ERR_IO);
    assert_int_equal(folder.count(), 1); // nothing else was left
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(random_changes),
        cmocka_unit_test(what_differs_is_named),
        cmocka_unit_test(files),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
