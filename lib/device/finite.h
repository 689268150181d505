// Searches arrays for values that are not finite (NaN or infinity).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace dtrain::device {

// The index of the first NaN or infinity among `count` values of a floating-point dtype, which need
// not be aligned; `count` if all are finite.
uint64_t first_not_finite(const void *values, uint64_t count, uint32_t dtype);

} // namespace dtrain::device
