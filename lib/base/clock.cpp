// Reads CLOCK_MONOTONIC.
// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <ctime>

namespace dtrain {
namespace {

class MonotonicClock final : public Clock {
  public:
    int64_t now_ns() override {
        timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return t.tv_sec * second + t.tv_nsec;
    }
};

} // namespace

// Never destroyed: when a program returns from main() without destroying its contexts, the
// library's threads go on reading the time until the process has ended.
Clock &monotonic_clock() {
    static constinit union Eternal {
        MonotonicClock clock;
        constexpr Eternal() : clock() {}
        ~Eternal() {}
    } eternal;
    return eternal.clock;
}

} // namespace dtrain
