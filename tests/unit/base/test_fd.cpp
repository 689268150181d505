// Descriptors of the library's: none of the standard three, none for forked children.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "base/fd.h"

#include <cstring>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using dtrain::Fd;

bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }
Fd null_device() { return Fd(open("/dev/null", O_RDWR | O_CLOEXEC)); }

// body() in a child returns whether all was right.
template <class F> void in_child(F &&body) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(body() ? 0 : 1);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

void the_standard_three_are_left_alone(void **) {
    in_child([] {
        close(0);
        close(1);
        const Fd one = null_device(), two = null_device();
        const dtrain::Stream stream = dtrain::read_stream("/proc/self/stat");
        const dtrain::Folder folder = dtrain::open_folder("/");
        return one.get() > 2 && two.get() > 2 && fileno(stream.get()) > 2 &&
               dirfd(folder.get()) > 2 && !is_open(0) && !is_open(1) &&
               (fcntl(one.get(), F_GETFD) & FD_CLOEXEC) != 0;
    });
}

// Another thread had one of the three for a moment when the library was about to open something.
void what_leaves_the_three_leaves_none_free(void **) {
    in_child([] {
        close(0);
        close(2);
        const int ours = open("/dev/null", O_RDWR | O_CLOEXEC);
        {
            const dtrain::StandardDescriptors occupied, twice;
            const Fd moved(ours);
            const int others = open("/dev/null", O_RDWR | O_CLOEXEC);
            if (ours != 0 || moved.get() < 3 || others < 3 || !is_open(0) || !is_open(2))
                return false;
            if (dup2(others, 2) != 2) return false; // the program's log
        }
        return !is_open(0) && is_open(2);
    });
    in_child([] {
        close(0);
        const Fd ours = null_device();
        const dtrain::StandardDescriptors occupied;
        const pid_t child = fork();
        if (child == 0) {
            const bool right = !is_open(0);
            const dtrain::StandardDescriptors own;
            _exit(right && is_open(0) ? 0 : 1);
        }
        int status = -1;
        return waitpid(child, &status, 0) == child && status == 0 && is_open(0);
    });
}

void a_failure_keeps_its_reason(void **) {
    const Fd none(open("/nonexistent", O_RDONLY | O_CLOEXEC));
    assert_true(!none && errno == ENOENT);
    assert_true(dtrain::read_stream("/nonexistent") == nullptr);
    assert_int_equal(errno, ENOENT);
}

void a_child_has_none(void **) {
    Fd kept = null_device(), moved = std::move(kept), closed = null_device();
    const int number = moved.get(), plain = open("/dev/null", O_RDONLY | O_CLOEXEC),
              given = open("/dev/null", O_RDONLY | O_CLOEXEC), lent = given;
    dtrain::Stream stream = dtrain::read_stream("/proc/self/stat");
    dtrain::Unshared unshared(given);
    closed.reset();
    in_child([&] {
        if (is_open(number) || is_open(fileno(stream.get())) || is_open(lent)) return false;
        if (!is_open(plain)) return false; // not ours
        Fd own = null_device();            // with a number that one had before
        moved.reset();                     // is the parent's and does nothing
        const bool good = is_open(own.get());
        const int its = own.get();
        own.reset();
        return good && !is_open(its);
    });
    assert_true(is_open(number) && is_open(given));
    unshared = dtrain::Unshared();
    in_child([&] { return is_open(given); });
    close(given);
    close(plain);
}

void a_grandchild_has_none_either(void **) {
    in_child([] {
        const Fd own = null_device();
        const pid_t grandchild = fork();
        if (grandchild == 0) _exit(is_open(own.get()) ? 1 : 0);
        int status = -1;
        return waitpid(grandchild, &status, 0) == grandchild && status == 0 && is_open(own.get());
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(the_standard_three_are_left_alone),
        cmocka_unit_test(what_leaves_the_three_leaves_none_free),
        cmocka_unit_test(a_failure_keeps_its_reason),
        cmocka_unit_test(a_child_has_none),
        cmocka_unit_test(a_grandchild_has_none_either),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
