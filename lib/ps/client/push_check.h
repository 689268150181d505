// What a table refuses of a push, found before any of it leaves: else some servers, or requests,
// would apply their parts.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"

#include <cstdint>

namespace dtrain::ps {

struct Transfer;

// Any operation; the values of pushes are looked at as they will travel.
Status check_push(const Transfer &transfer, uint32_t worker);

} // namespace dtrain::ps
