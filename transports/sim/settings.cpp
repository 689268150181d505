// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

#include <charconv>
#include <string_view>

namespace dtrain::tp::sim {
namespace {

constexpr uint64_t most = uint64_t{1} << 40; // about 18 minutes, or 1 TiB: sums stay far from 2^63

struct Number {
    const char *key;
    uint64_t Settings::*member;
    uint64_t max;
};
constexpr Number numbers[] = {
    {"plugin.sim.seed", &Settings::seed, UINT64_MAX},
    {"plugin.sim.latency", &Settings::latency, most},
    {"plugin.sim.jitter", &Settings::jitter, most},
    {"plugin.sim.bandwidth", &Settings::bandwidth, most},
    {"plugin.sim.eager", &Settings::eager, most},
    {"plugin.sim.buffer", &Settings::buffer, most},
};

} // namespace

dtrain_status_t read_settings(const Host &host, Settings &settings) {
    char text[sizeof settings.network] = {}; // settings are compared as a whole
    if (host.option("plugin.sim.network", text, sizeof text))
        memcpy(settings.network, text, sizeof text);
    for (const Number &number : numbers) {
        if (!host.option(number.key, text, sizeof text)) continue;
        const char *end = text + std::string_view(text).size();
        auto [at, error] = std::from_chars(text, end, settings.*number.member);
        if (error != std::errc{} || at != end || settings.*number.member > number.max)
            return host.fail(DTRAIN_ERR_CONFIG, "option %s: \"%s\" is not a number of at most %llu",
                             number.key, text, static_cast<unsigned long long>(number.max));
    }
    return DTRAIN_OK;
}

} // namespace dtrain::tp::sim
