// Averages over messages whose partial sums do not fit into the dtype.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/communicator/communicator.h"

namespace dtrain::collectives {

// AVG of integers and f16 (device::sum_format()). Shared memory needs no partial sums.
bool needs_wide_sums(const CollectiveSpec &spec, uint32_t dtype);

// Communicator::post() of such a call: the sum of a copy of the input, in memory of its own, and
// the result made of it when that is done.
Status post_wide_average(Communicator &comm, const Prepared &average, const CallOptions &options);

} // namespace dtrain::collectives
