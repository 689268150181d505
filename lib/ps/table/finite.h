// Finding what is no finite number.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace dtrain::ps {

struct TableParams;

// The first NaN or infinity of so many values of a floating dtype, anywhere in memory; count: there
// is none.
uint64_t first_not_finite(const void *values, uint64_t count, uint32_t dtype);
// The same of what values of the table's dtype become when they are pushed.
uint64_t first_not_finite_sent(const TableParams &params, const void *values, uint64_t count);

} // namespace dtrain::ps
