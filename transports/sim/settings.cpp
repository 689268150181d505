// Reads the options of the simulated network.
// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

#include "common/number.h"

namespace dtrain::tp::sim {
namespace {

constexpr uint64_t most = uint64_t{1} << 40; // about 18 minutes, or 1 TiB: sums stay far below 2^63

constexpr NumberOption<Settings> numbers[] = {
    {"plugin.sim.seed", &Settings::seed, UINT64_MAX},
    {"plugin.sim.latency", &Settings::latency, most},
    {"plugin.sim.jitter", &Settings::jitter, most},
    {"plugin.sim.bandwidth", &Settings::bandwidth, most},
    {"plugin.sim.eager", &Settings::eager, most},
    {"plugin.sim.buffer", &Settings::buffer, most},
};

} // namespace

dtrain_status_t read_settings(const Host &host, Settings &settings) {
    char name[sizeof settings.network] = {}; // zeroed, since settings are compared as a whole
    if (host.option("plugin.sim.network", name, sizeof name))
        memcpy(settings.network, name, sizeof name);
    return read_numbers(host, numbers, settings);
}

} // namespace dtrain::tp::sim
