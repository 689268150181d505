// How far apart the cores of a window's ranks are.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/clock.h"
#include "collectives/window/window.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace dtrain::collectives {

// The time that a cache line takes from core to core decides which way is the fastest: 50 to 70 ns
// inside a processor, 120 to 270 between two. Processes and virtual processors move, so it is
// measured again now and then, by calls that all ranks are making at that moment: a line travels to
// and fro between neighbors.
class Distance {
  public:
    // lines: by rank; each is written by that rank alone, and begins as 0. They and the clock must
    // outlive it. own_cores: no two ranks share a core; otherwise they cannot wait for each other's
    // lines, and the distance stays unknown.
    Distance(std::vector<Counter *> &&lines, uint32_t rank, bool own_cores, Clock &clock)
        : lines_(std::move(lines)), clock_(clock), rank_(rank), own_cores_(own_cores) {}

    // Whether the next of the calls that ask must measure: the first, and then one of many.
    bool is_due() { return own_cores_ && asked_++ % calls_between == 0; }
    // While the other ranks do the same; gives up after a moment, and then knows what it knew.
    void measure();
    bool is_far() const { return line_ns_ > far_ns; }

  private:
    static constexpr uint64_t calls_between = 256;
    static constexpr double far_ns = 90;

    std::optional<double> to(uint32_t peer, bool begins, uint64_t first);
    bool has_come(uint32_t peer, uint64_t number, int64_t deadline_ns);
    void send(uint64_t number);

    const std::vector<Counter *> lines_;
    Clock &clock_;
    const uint32_t rank_;
    const bool own_cores_;
    uint64_t asked_ = 0, measured_ = 0;
    double line_ns_ = 0; // to the more distant neighbor; 0: unknown
};

} // namespace dtrain::collectives
