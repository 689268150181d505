// Sleeps until something happens at a descriptor.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/clock.h"

#include <cstdint>
#include <ctime>
#include <poll.h>
#include <span>

namespace dtrain {

// Returns whether anything has happened; a signal, too, ends the sleep.
inline bool sleep_on(std::span<pollfd> fds, int64_t timeout_ns) {
    const timespec timeout{timeout_ns / second, timeout_ns % second};
    return ppoll(fds.data(), fds.size(), &timeout, nullptr) > 0;
}

} // namespace dtrain
