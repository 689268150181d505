// Which object of the world a descriptor of this process stands for.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "network.h"
#include "scheduler.h"

#include <cerrno>

namespace dtrain::simulator {

int object_of(int fd);            // 0: it is the kernel's
int enter_descriptor(int object); // -errno passes
int result_of(int64_t result);    // -errno becomes -1 and errno
void wait_for_events(int object, short events, int64_t deadline);

// Calls `attempt` until it does not say EAGAIN, or once.
template <class Attempt>
int64_t transfer(const char *call, int object, short events, bool only_once, Attempt &&attempt) {
    step(call);
    for (;;) {
        const int64_t result = attempt();
        const bool once = only_once || world->objects[object].nonblocking;
        if (result == -EAGAIN && once) find_nothing();
        if (result != -EAGAIN || once) return result >= 0 ? result : result_of(result);
        wait_for_events(object, events, never);
    }
}

} // namespace dtrain::simulator
