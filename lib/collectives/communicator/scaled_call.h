// Reductions whose input or result is multiplied by a factor.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/communicator/communicator.h"

namespace dtrain::collectives {

// Communicator::post() with options.scaling. The calling thread scales the input, if possible into
// the receive buffer; the result is scaled in place when the call is done.
Status post_scaled(Communicator &comm, const Call &call, const CallOptions &options);

// The parts of it for a call whose buffers are scaled by others: they scale what the plain call
// reads, and its result. First the checks; then, just before the plain call is posted, what lets
// the ranks compare the factors.
Status check_scaling(const Communicator &comm, const Call &call, const Scaling &scaling);
Status agree_on_scaling(Communicator &comm, const Call &call, const Scaling &scaling);

} // namespace dtrain::collectives
