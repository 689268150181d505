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

// Never destroyed: a program that returns from main() without destroying its contexts leaves
// threads of ours, which read the time until the process has ended.
Clock &monotonic_clock() {
    static constinit union Eternal {
        MonotonicClock clock;
        constexpr Eternal() : clock() {}
        ~Eternal() {}
    } eternal;
    return eternal.clock;
}

} // namespace dtrain
