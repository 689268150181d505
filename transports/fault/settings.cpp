// Reads the options of the fault transport.
// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

#include "common/number.h"

namespace dtrain::tp::fault {
namespace {

constexpr uint64_t always = 1000; // probabilities are per thousand

constexpr NumberOption<Settings> numbers[] = {
    {"plugin.fault.seed", &Settings::seed, UINT64_MAX},
    {"plugin.fault.after", &Settings::after, UINT64_MAX},
    {"plugin.fault.drop", &Settings::drop, always},
    {"plugin.fault.truncate", &Settings::truncate, always},
    {"plugin.fault.flip", &Settings::flip, always},
    {"plugin.fault.duplicate", &Settings::duplicate, always},
    {"plugin.fault.reset", &Settings::reset, always},
    {"plugin.fault.refuse", &Settings::refuse, UINT64_MAX},
    {"plugin.fault.delay", &Settings::delay, 1'000'000},
};

} // namespace

dtrain_status_t read_settings(const Host &host, Settings &settings) {
    char name[sizeof settings.over];
    if (host.option("plugin.fault.over", name, sizeof name))
        memcpy(settings.over, name, sizeof name);
    if (strcmp(settings.over, "fault") == 0)
        return host.fail(DTRAIN_ERR_CONFIG, "option plugin.fault.over: it cannot wrap itself");
    return read_numbers(host, numbers, settings);
}

} // namespace dtrain::tp::fault
