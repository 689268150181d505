// The interface through which the library reads time: CLOCK_MONOTONIC in production, virtual time
// in a simulation.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace dtrain {

inline constexpr int64_t us = 1000, ms = 1000 * us, second = 1000 * ms; // in nanoseconds

class Clock {
  public:
    virtual ~Clock() = default;
    virtual int64_t now_ns() = 0;
};

Clock &monotonic_clock();

} // namespace dtrain
