// What the option "protection" demands.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/options.h"
#include "protection/level.h"

namespace dtrain::protection {

struct Demand {
    Level control = Level::none; // of control connections
    Least data;                  // of data connections over a network, the loopback included
};

// DTRAIN_ERR_CONFIG: something is demanded, but there is no secret to make keys from.
Status read_demand(const Options &options, bool has_secret, Demand &out);

} // namespace dtrain::protection
