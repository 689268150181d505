// Workers that leave a job give the parts of tables that they serve to workers that stay.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cluster/control/next_job.h"
#include "collectives/communicator/communicator.h"
#include "ps/server/legacy.h"

#include <cstdint>

namespace dtrain::elastic {

// Called by all workers of the old communicator once they have agreed on the next generation:
// those that leave send what they own, those that are to take it add it to `received`, and the
// others return at once. A part that does not arrive, because a worker is lost meanwhile, is
// logged: its table is not whole then, and creating it says so.
void hand_over(collectives::Communicator &old, const cluster::NextJob &next, int64_t deadline_ns,
               const ps::Legacy &own, ps::Handed &received);

} // namespace dtrain::elastic
