// Part of a test in a process of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "check.h"

#include <csignal>
#include <cstdlib>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dtrain::test {

// Runs body(fd) in a child; fd is one end of a blocking socket pair, peer the other.
struct Child {
    template <class Body> explicit Child(Body &&body) {
        int ends[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            setenv("CMOCKA_TEST_ABORT", "1", 1); // a failed check must end the child
            close(ends[0]);
            body(ends[1]);
            _exit(0);
        }
        close(ends[1]);
        peer = ends[0];
    }
    Child(const Child &) = delete;
    ~Child() {
        if (peer >= 0) close(peer);
        if (pid > 0) {
            kill(pid, SIGKILL);
            waitpid(pid, nullptr, 0);
        }
    }
    // Its checks must all have held.
    void join() {
        int status = -1;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        pid = 0;
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    void stop() { kill(pid, SIGKILL); }

    pid_t pid = 0;
    int peer = -1;
};

inline void give(int fd, const void *data, size_t len) {
    assert_int_equal(write(fd, data, len), len);
}
inline void take(int fd, void *data, size_t len) {
    assert_int_equal(recv(fd, data, len, MSG_WAITALL), len);
}

} // namespace dtrain::test
