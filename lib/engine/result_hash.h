// A number by which ranks compare results that must be equal.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace dtrain::engine {

// The hash of a buffer of elements of a dtype; 0: of bytes. Floating-point numbers of one value are
// equal, whatever their bits: ranks may get zeros of either sign, and any NaN, from a minimum or a
// sum whose operands they exchange.
uint64_t result_hash(const void *data, uint64_t bytes, uint32_t dtype);

} // namespace dtrain::engine
