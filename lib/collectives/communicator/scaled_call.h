// Reductions whose input or result is multiplied by a factor.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/communicator/communicator.h"

namespace dtrain::collectives {

// Communicator::post() with options.scaling. The input is scaled by the calling thread, where there
// is room into the receive buffer; the result when the call is done, in place.
Status post_scaled(Communicator &comm, const Call &call, const CallOptions &options);

} // namespace dtrain::collectives
