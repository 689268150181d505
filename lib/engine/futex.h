// Sleeping and waking on a word of memory of this process.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/clock.h"

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dtrain::engine {

// Returns when woken, when *word != expected, after timeout_ns, or spuriously.
inline void futex_wait(std::atomic<uint32_t> *word, uint32_t expected, int64_t timeout_ns) {
    timespec t = {timeout_ns / second, timeout_ns % second};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, &t, nullptr, 0);
}

inline void futex_wake_all(std::atomic<uint32_t> *word) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

} // namespace dtrain::engine
