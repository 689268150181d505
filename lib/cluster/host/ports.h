// Ports for a job that is told a host, but no port of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>

namespace dtrain::cluster {

// Ports below those that systems use for outgoing connections, and far from the seed itself, which
// may be the port of another program.
constexpr std::array<uint16_t, 4> ports_from(uint32_t seed) {
    constexpr uint32_t first = 1024, count = 32768 - first, step = 2053; // a prime
    std::array<uint16_t, 4> ports{};
    for (uint32_t i = 0; i < ports.size(); i++)
        ports[i] = uint16_t(first + (seed % count + step * (i + 1)) % count);
    return ports;
}

} // namespace dtrain::cluster
