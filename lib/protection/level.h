// How much a connection is protected.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace dtrain::protection {

enum class Level : uint8_t { none, integrity, encrypted };

// The least protection of a connection that one side puts up with.
struct Least {
    Level outside = Level::none; // of one that may leave the host
    Level inside = Level::none;  // of one whose two ends are in one network of one kernel

    constexpr Least() = default;
    constexpr Least(Level everywhere) : outside(everywhere), inside(everywhere) {}
    constexpr Least(Level out, Level in) : outside(out), inside(in) {}
    bool operator==(const Least &) const = default;
};

} // namespace dtrain::protection
