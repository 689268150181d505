// Pieces of secret memory, and the job's secret in them.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "base/secret.h"
#include "base/secret_memory.h"
#include "temporary_folder.h"

#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <utility>
#include <vector>

using namespace dtrain;

namespace {

void pieces_do_not_overlap(void **) {
    std::vector<std::pair<uint8_t *, size_t>> all;
    for (size_t i = 0; i < 3000; i++) {
        const size_t length = 1 + i * 37 % 4096;
        auto *piece = static_cast<uint8_t *>(take_secret_memory(length));
        assert_non_null(piece);
        assert_int_equal(uintptr_t(piece) % 16, 0);
        memset(piece, int(i), length);
        all.emplace_back(piece, length);
    }
    for (size_t i = 0; i < all.size(); i++) {
        for (size_t k = 0; k < all[i].second; k++) assert_int_equal(all[i].first[k], uint8_t(i));
        give_back_secret_memory(all[i].first, all[i].second);
    }
    assert_null(take_secret_memory(4097));
}

// The one that takes the piece next sees whether it was wiped.
void copies_share_a_secret(void **) {
    const std::string text(100, 'x');
    std::optional<Secret> first = text;
    const char *const place = first->text().data();
    std::optional<Secret> second = first;
    assert_true(second->text().data() == place && second->text() == text);
    first.reset();
    assert_true(second->text() == text);
    second.reset();
    auto *next = static_cast<const char *>(take_secret_memory(text.size()));
    assert_true(next == place);
    for (size_t i = sizeof(void *); i < text.size(); i++) assert_int_equal(next[i], 0);
    give_back_secret_memory(const_cast<char *>(next), text.size());
    assert_true(Secret().empty() && Secret("").empty() && Secret().text().empty());
}

void the_longest_option_fits(void **) {
    Options options;
    Secret secret;
    const std::string text(Secret::most_bytes, 'x');
    assert_int_equal(options.set("secret", text), DTRAIN_OK);
    assert_int_equal(read_secret(options, secret), DTRAIN_OK);
    assert_true(secret.text() == text);
    assert_int_equal(options.set("secret", text + "x"), DTRAIN_ERR_LIMIT);
}

// As a crash may leave a file that was not synced.
void zero_bytes_are_no_secret(void **) {
    const TemporaryFolder folder;
    const std::string path = folder.file("secret");
    Options options;
    Secret secret;
    assert_int_equal(options.set("secret.file", path), DTRAIN_OK);
    for (const std::string &text : {std::string(), std::string(1, '\0'), std::string(64, '\0')}) {
        std::ofstream(path) << text;
        assert_int_equal(chmod(path.c_str(), 0600), 0);
        assert_int_equal(read_secret(options, secret), DTRAIN_ERR_CONFIG);
        assert_non_null(std::strstr(error_text(), path.c_str()));
    }
    const std::string binary("\0\1", 2);
    std::ofstream(path) << binary;
    assert_int_equal(read_secret(options, secret), DTRAIN_OK);
    assert_true(secret.text() == binary);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(pieces_do_not_overlap),
        cmocka_unit_test(copies_share_a_secret),
        cmocka_unit_test(the_longest_option_fits),
        cmocka_unit_test(zero_bytes_are_no_secret),
    };
    return cmocka_run_group_tests_name("secret_memory", tests, nullptr, nullptr);
}
