// Which bytes of its buffers a call reads and writes.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "accel/staged_buffers.h"
#include "collectives/call/collective.h"

#include <vector>

namespace dtrain::collectives {

// Of this rank's send buffer (broadcast: the root's one buffer).
std::vector<accel::Extent> read_extents(const CollectiveSpec &spec);
// Of this rank's receive buffer. Gaps between displaced blocks are in none.
std::vector<accel::Extent> written_extents(const CollectiveSpec &spec);

} // namespace dtrain::collectives
