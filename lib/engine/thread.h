// Threads of the library's own.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"

#include <csignal>
#include <pthread.h>
#include <system_error>
#include <thread>
#include <utility>

namespace dtrain::engine {

// Runs body() in a new thread without signals: the program's are for the program's threads. name:
// at most 15 bytes.
template <class F> Status start_thread(std::thread &thread, const char *name, F &&body) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    Status s = DTRAIN_OK;
    try {
        thread = std::thread([name, body = std::forward<F>(body)] {
            pthread_setname_np(pthread_self(), name);
            body();
        });
    } catch (const std::system_error &e) {
        s = fail(DTRAIN_ERR_LIMIT, "thread %s: %s", name, e.what());
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return s;
}

} // namespace dtrain::engine
