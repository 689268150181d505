// Clocks and sleep: time is the world's.
// SPDX-License-Identifier: Apache-2.0
#include "real.h"
#include "scheduler.h"

#include <cstring>
#include <ctime>
#include <sched.h>
#include <sys/random.h>
#include <unistd.h>

using namespace dtrain::simulator;

namespace {

constexpr int64_t epoch = 1'800'000'000 * second; // what CLOCK_REALTIME says more

} // namespace

INSTEAD int clock_gettime(clockid_t clock, timespec *out) noexcept {
    const auto real = REAL(clock_gettime);
    if (!simulated()) return real(clock, out);
    step("clock_gettime");
    int64_t now = world->clock;
    if (clock == CLOCK_REALTIME) now += epoch + own_process().ahead;
    *out = {now / second, now % second};
    return 0;
}

INSTEAD int nanosleep(const timespec *time, timespec *left) {
    const auto real = REAL(nanosleep);
    if (!simulated()) return real(time, left);
    step("nanosleep");
    sleep_until(world->clock + in_ns(*time));
    return 0;
}

INSTEAD int sched_yield() noexcept {
    const auto real = REAL(sched_yield);
    if (!simulated()) return real();
    step("sched_yield");
    yield();
    return 0;
}

// How many cores this process may use decides how long its threads spin.
INSTEAD int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *out) noexcept {
    const auto real = REAL(sched_getaffinity);
    if (!simulated()) return real(pid, bytes, out);
    memset(out, 0, bytes);
    for (int i = 0; i < world->cores; i++) CPU_SET_S(size_t(i), bytes, out);
    return 0;
}

INSTEAD ssize_t getrandom(void *out, size_t bytes, unsigned flags) {
    const auto real = REAL(getrandom);
    if (!simulated()) return real(out, bytes, flags);
    step("getrandom");
    for (size_t i = 0; i < bytes; i++)
        static_cast<unsigned char *>(out)[i] = uint8_t(random_number());
    return ssize_t(bytes);
}

// The same in each run.
INSTEAD pid_t getpid() noexcept {
    const auto real = REAL(getpid);
    return simulated() ? 1000 + own().process : real();
}
