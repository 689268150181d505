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

Clock &monotonic_clock() {
    static constinit MonotonicClock clock;
    return clock;
}

} // namespace dtrain
