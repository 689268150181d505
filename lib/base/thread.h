// Starts threads of the library.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"
#include "common/signals.h"

#include <pthread.h>
#include <system_error>
#include <thread>
#include <utility>

namespace dtrain {

// Runs body() in a new thread that blocks all signals. name: at most 15 bytes.
template <class F> Status start_thread(std::thread &thread, const char *name, F &&body) {
    const tp::SignalsHeld held;
    try {
        thread = std::thread([name, body = std::forward<F>(body)] {
            pthread_setname_np(pthread_self(), name);
            body();
        });
    } catch (const std::system_error &e) {
        return fail(DTRAIN_ERR_LIMIT, "starting thread \"%s\": %s", name, e.what());
    }
    return DTRAIN_OK;
}

} // namespace dtrain
