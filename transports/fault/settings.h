// Which faults occur, and how often.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/host.h"

#include <cstdint>

namespace dtrain::tp::fault {

// Option plugin.fault.<name of the member>; "over" is text, the others are whole numbers. Chances
// are per thousand messages. Every device derives its random numbers from the seed alone: give
// ranks different seeds.
struct Settings {
    char over[33] = "sim"; // the wrapped transport
    uint64_t seed = 1;
    uint64_t after = 0;     // number of messages that a device sends unharmed first
    uint64_t drop = 0;      // chance that a message is never sent though its send succeeds
    uint64_t truncate = 0;  // chance that only its beginning is sent
    uint64_t flip = 0;      // chance that one of its bits is changed
    uint64_t duplicate = 0; // chance that it is sent twice
    uint64_t reset = 0;     // chance that its endpoint breaks
    uint64_t refuse = 0;    // number of attempts to connect that fail first
    uint64_t delay = 0;     // a message is held for up to this many calls of progress()
};

dtrain_status_t read_settings(const Host &host, Settings &settings);

} // namespace dtrain::tp::fault
