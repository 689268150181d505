// Counts forks with a pthread_atfork() handler.
// SPDX-License-Identifier: Apache-2.0
#include "api/fork.h"

#include <pthread.h>

namespace dtrain::api {

constinit std::atomic<uint32_t> fork_generation{0};

void watch_forks() {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, [] {
        pthread_atfork(nullptr, nullptr,
                       [] { fork_generation.fetch_add(1, std::memory_order_relaxed); });
    });
}

} // namespace dtrain::api
