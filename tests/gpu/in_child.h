// Runs tests in processes of their own: a fault of a GPU lasts until the process ends, and a child
// has a driver only if its parent has not started one.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "require.h"

#include <csignal>
#include <cstdio>
#include <initializer_list>
#include <sys/wait.h>
#include <unistd.h>

namespace gpu {

template <class F> void in_child(F &&body) {
    std::fflush(nullptr);
    const pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        // cmocka's handlers would go on with the next test here.
        for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) ::signal(number, SIG_DFL);
        body();
        std::fflush(nullptr);
        _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    if (status != 0) std::fprintf(stderr, "the child ended with %#x\n", status);
    REQUIRE(status == 0);
}

} // namespace gpu
