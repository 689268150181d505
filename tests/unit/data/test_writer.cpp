// A TFRecord file is there whole or not at all.
// SPDX-License-Identifier: Apache-2.0
#include "files.h"

#include <cstring>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace dtrain;

namespace {

void appears_when_closed(void **) {
    TemporaryFolder folder;
    write_records(folder.file("a"), {"old"});
    data::Writer writer;
    assert_int_equal(writer.open(folder.file("a").c_str()), DTRAIN_OK);
    assert_int_equal(writer.append(bytes_of("new")), DTRAIN_OK);
    assert_true(read_records({folder.file("a")}) == std::vector<std::string>{"old"});
    assert_int_equal(writer.close(), DTRAIN_OK);
    assert_true(read_records({folder.file("a")}) == std::vector<std::string>{"new"});
    assert_int_equal(folder.count(), 1);
}

void permissions_follow_the_umask(void **) {
    TemporaryFolder folder;
    const mode_t before = umask(027);
    write_records(folder.file("a"), {"a"});
    umask(before);
    struct stat st;
    assert_int_equal(stat(folder.file("a").c_str(), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
}

void abandoned_leaves_nothing(void **) {
    TemporaryFolder folder;
    {
        data::Writer writer;
        assert_int_equal(writer.open(folder.file("a").c_str()), DTRAIN_OK);
        assert_int_equal(writer.append(bytes_of("lost")), DTRAIN_OK);
        assert_int_equal(folder.count(), 1);
    }
    assert_int_equal(folder.count(), 0);
}

void paths_that_cannot_be_written(void **) {
    TemporaryFolder folder;
    data::Writer missing, directory;
    assert_int_equal(missing.open(folder.file("none/a").c_str()), DTRAIN_ERR_NOT_FOUND);
    assert_non_null(std::strstr(error_text(), "none/a"));
    assert_int_equal(directory.open(folder.name.c_str()), DTRAIN_ERR_IO);
    assert_int_equal(folder.count(), 0);
}

// The folder goes before the file gets its name.
void rename_fails(void **) {
    TemporaryFolder folder;
    const std::string inner = folder.file("inner");
    assert_int_equal(mkdir(inner.c_str(), 0700), 0);
    data::Writer writer;
    assert_int_equal(writer.open((inner + "/a").c_str()), DTRAIN_OK);
    assert_int_equal(writer.append(bytes_of("lost")), DTRAIN_OK);
    std::filesystem::remove_all(inner);
    assert_int_not_equal(writer.close(), DTRAIN_OK);
    assert_non_null(std::strstr(error_text(), "cannot rename"));
}

// Writes more than the file system under `folder` holds. 0: as expected; else the line that failed.
int fill_up(const std::string &folder) {
    const std::string path = folder + "/a", piece(64 << 10, 'x');
    data::Writer writer;
    if (writer.open(path.c_str()) != DTRAIN_OK) return __LINE__;
    Status s = DTRAIN_OK;
    for (int i = 0; i < 64 && s == DTRAIN_OK; i++) s = writer.append(bytes_of(piece));
    if (s != DTRAIN_ERR_IO || std::strstr(error_text(), "No space left") == nullptr)
        return __LINE__;
    if (writer.append(bytes_of("more")) != DTRAIN_ERR_IO) return __LINE__;
    if (writer.close() != DTRAIN_ERR_IO) return __LINE__;
    if (std::strstr(error_text(), "No space left") == nullptr) return __LINE__;
    return std::filesystem::is_empty(folder) ? 0 : __LINE__;
}

// On a small tmpfs that only the child sees.
constexpr int not_allowed = 255;
int fill_a_file_system() {
    TemporaryFolder folder;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (unshare(CLONE_NEWNS) != 0 ||
            mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            mount("tmpfs", folder.name.c_str(), "tmpfs", 0, "size=1m") != 0)
            _exit(not_allowed);
        _exit(fill_up(folder.name));
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}
void full_file_system(void **) {
    const int status = fill_a_file_system(); // skip() runs no destructors
    if (status == not_allowed) {
        print_message("not run: mounting a tmpfs needs root\n");
        skip();
    }
    assert_int_equal(status, 0);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(appears_when_closed),
        cmocka_unit_test(permissions_follow_the_umask),
        cmocka_unit_test(abandoned_leaves_nothing),
        cmocka_unit_test(paths_that_cannot_be_written),
        cmocka_unit_test(rename_fails),
        cmocka_unit_test(full_file_system),
    };
    return cmocka_run_group_tests_name("writer", tests, nullptr, nullptr);
}
