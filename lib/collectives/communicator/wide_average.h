// Computes averages over messages whose partial sums do not fit into the dtype.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/communicator/communicator.h"

namespace dtrain::collectives {

// True for AVG of integers and f16 (device::sum_format()). In shared memory there are no partial
// sums.
bool needs_wide_sums(const CollectiveSpec &spec, uint32_t dtype);

// Posts such a call as the sum of a converted copy of the input, and computes the result from the
// sums when they are done. Heeds the request's gate.
Status post_wide_average(Communicator &comm, const Prepared &average, const CallOptions &options);

} // namespace dtrain::collectives
