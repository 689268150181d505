// The kernels of one instruction set as a table, and the tables this processor can run.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "dtrain.h"

namespace dtrain::device {

inline constexpr uint32_t dtype_count = DTRAIN_U64 + 1; // no dtype is 0
inline constexpr uint32_t op_count = DTRAIN_BXOR + 1;   // no op is 0

// dsts[k][i] = srcs[0][i] op srcs[1][i] op ... for all m of k; m and n >= 1. A destination may be
// one of the srcs.
using ReduceFn = void(void *const *dsts, uint32_t m, const void *const *srcs, uint32_t n,
                      uint64_t count);
// dst[i] /= divisor
using ScaleFn = void(void *dst, uint64_t count, uint32_t divisor);

struct DtypeKernels {
    ReduceFn *ops[op_count];
    ScaleFn *scale;
};

struct Kernels {
    const char *target;
    const DtypeKernels *dtypes[dtype_count];
};

// The rank-th best table this processor can run (0 = the best), nullptr beyond the last one.
const Kernels *supported_kernels(uint32_t rank);

} // namespace dtrain::device
