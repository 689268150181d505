// Searches a push for values that are not finite, in the form in which they travel.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace dtrain::ps {

struct TableParams;

// The index of the first of `count` values of the table's dtype that is a NaN or an infinity after
// its conversion to the table's wire_dtype; `count` if all are finite.
uint64_t first_not_finite_sent(const TableParams &params, const void *values, uint64_t count);

} // namespace dtrain::ps
