// What a simulated card is told of the world.
// SPDX-License-Identifier: Apache-2.0
#include "card_access.h"
#include "real.h"
#include "world.h"

using namespace dtrain::simulator;

INSTEAD int simulator_own_host() { return own_process().host; }

INSTEAD pid_t simulator_process_of(int host) { return world->processes[host].pid; }

INSTEAD int64_t simulator_cut_until(int host) {
    return host == own_process().host ? 0 : world->links[own_process().host][host].cut_until;
}
