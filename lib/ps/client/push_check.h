// Finds values that a table refuses before any part of the push is sent; otherwise some servers, or
// some requests, would apply their parts.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"

#include <cstdint>

namespace dtrain::ps {

struct Transfer;

// Accepts any operation. Checks the values of pushes after their conversion to the wire_dtype.
Status check_push(const Transfer &transfer, uint32_t worker);

} // namespace dtrain::ps
