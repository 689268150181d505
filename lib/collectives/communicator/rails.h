// Finds out which rails work when a job starts.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/communicator/communicator.h"

namespace dtrain::collectives {

// Collective and blocking: all ranks leave out the rails that do not lead to another host. Rail 0
// is always used.
Status check_rails(Communicator &comm, int64_t deadline_ns);

} // namespace dtrain::collectives
