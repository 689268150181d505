// Files that are written where others may have laid links.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "base/output_file.h"
#include "temporary_folder.h"

#include <cstdio>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

using namespace dtrain;

namespace {

void lay(const std::string &path, const char *content) {
    FILE *file = std::fopen(path.c_str(), "w");
    std::fputs(content, file);
    std::fclose(file);
}

std::string content_of(const std::string &path) {
    FILE *file = std::fopen(path.c_str(), "r");
    if (file == nullptr) return "none";
    char text[100] = "";
    const size_t size = std::fread(text, 1, sizeof text - 1, file);
    std::fclose(file);
    return {text, size};
}

Status write_anew(const std::string &path, const char *content) {
    Fd fd;
    if (Status s = replace_file(path, fd); s != DTRAIN_OK) return s;
    const ssize_t written = write(fd.get(), content, std::strlen(content));
    assert_int_equal(written, std::strlen(content));
    return DTRAIN_OK;
}

void links_are_not_followed(void **) {
    TemporaryFolder folder;
    const std::string victim = folder.file("victim"), path = folder.file("t.json");
    lay(victim, "precious");
    assert_int_equal(symlink(victim.c_str(), path.c_str()), 0);
    assert_int_equal(write_anew(path, "new"), DTRAIN_ERR_IO);
    assert_non_null(std::strstr(error_text(), "symbolic link"));
    assert_string_equal(content_of(victim).c_str(), "precious");
    unlink(path.c_str());
    assert_int_equal(link(victim.c_str(), path.c_str()), 0);
    assert_int_equal(write_anew(path, "new"), DTRAIN_OK);
    assert_string_equal(content_of(victim).c_str(), "precious");
    assert_string_equal(content_of(path).c_str(), "new");
}

void a_file_is_replaced(void **) {
    TemporaryFolder folder;
    const std::string path = folder.file("t.json");
    assert_int_equal(write_anew(path, "one, long"), DTRAIN_OK);
    assert_int_equal(write_anew(path, "two"), DTRAIN_OK);
    assert_string_equal(content_of(path).c_str(), "two");
    assert_int_equal(write_anew("/dev/null", "three"), DTRAIN_OK);
    struct stat null {};
    assert_int_equal(stat("/dev/null", &null), 0);
    assert_true(S_ISCHR(null.st_mode));
    assert_int_equal(write_anew(folder.file("no/t.json"), "four"), DTRAIN_ERR_NOT_FOUND);
}

// Neither the name, nor one beside it that somebody has foreseen.
void whole_files_appear_in_place_of_links(void **) {
    TemporaryFolder folder;
    const std::string victim = folder.file("victim"), path = folder.file("tuning");
    lay(victim, "precious");
    for (const std::string &name : {path, path + ".new", path + ".tmp"})
        assert_int_equal(symlink(victim.c_str(), name.c_str()), 0);
    assert_int_equal(write_whole_file(path, "measured"), DTRAIN_OK);
    assert_string_equal(content_of(victim).c_str(), "precious");
    assert_string_equal(content_of(path).c_str(), "measured");
    assert_int_equal(folder.count(), 4); // nothing is left beside it
    assert_int_equal(write_whole_file(folder.file("no/tuning"), "x"), DTRAIN_ERR_NOT_FOUND);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(links_are_not_followed),
        cmocka_unit_test(a_file_is_replaced),
        cmocka_unit_test(whole_files_appear_in_place_of_links),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
