// State that a device and all its connections share.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/host.h"
#include "protocol/receives.h"

namespace dtrain::protocol {

struct Shared {
    // `of`: the beginning of the device's error texts, at most 15 characters.
    Shared(const dtrain_tp_host_t *table, const char *of) : host(table) {
        snprintf(name, sizeof name, "%s", of);
    }

    const tp::Host host;
    char name[16];
    tp::Completions completions;
    Receives receives{&completions};
    uint64_t eager_limit = 0; // bytes of a message up to which it is not announced
    bool attention = false;   // progress() has work that no event signals
};

} // namespace dtrain::protocol
