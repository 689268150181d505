// Reductions whose input or result is multiplied by a factor.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/communicator/communicator.h"

namespace dtrain::collectives {

// Communicator::post() with options.scaling. The calling thread scales the input, if possible into
// the receive buffer; the result is scaled in place when the call is done.
Status post_scaled(Communicator &comm, const Call &call, const CallOptions &options);

} // namespace dtrain::collectives
