// Means of integers. No processor has vector instructions for integer division, so all targets
// share these.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace dtrain::device {

// As ScaleFn and, for AVG, ReduceFn (kernel_table.h), for T = int8_t to uint64_t. Sums are exact
// for up to 65536 sources; quotients are rounded toward zero.
template <class T> void divide_integers(void *dst, uint64_t count, uint32_t divisor);
template <class T>
void mean_of_integers(void *const *dsts, uint32_t m, const void *const *srcs, uint32_t n,
                      uint64_t count);

} // namespace dtrain::device
