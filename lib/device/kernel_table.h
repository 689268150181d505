// The kernels of one instruction set as a table, and the tables this processor can run.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "dtrain.h"

namespace dtrain::device {

inline constexpr uint32_t dtype_count = DTRAIN_U64 + 1; // no dtype is 0
inline constexpr uint32_t op_count = DTRAIN_BXOR + 1;   // no op is 0

// out[i] = a[i] op b[i]; out may be a or b.
using ReduceFn = void(void *out, const void *a, const void *b, uint64_t count);
// dst[i] /= divisor
using ScaleFn = void(void *dst, uint64_t count, uint32_t divisor);

// One op on one dtype. A running result is kept wide: as f32 for f16 and bf16, else as the dtype.
struct ReduceKernel {
    ReduceFn *pair;  // dtype = dtype op dtype
    ReduceFn *first; // wide = dtype op dtype
    ReduceFn *next;  // wide = wide op dtype
    ReduceFn *last;  // dtype = wide op dtype
};

struct DtypeKernels {
    uint32_t wide_size; // bytes
    ReduceKernel ops[op_count];
    ScaleFn *scale;
};

struct Kernels {
    const char *target;
    const DtypeKernels *dtypes[dtype_count];
};

// The rank-th best table this processor can run (0 = the best), nullptr beyond the last one.
const Kernels *supported_kernels(uint32_t rank);

// As in kernels.h, with a table of the caller's choice.
void reduce_many(const Kernels &kernels, void *dst, const void *const *srcs, uint32_t n,
                 uint64_t count, uint32_t dtype, uint32_t op);

} // namespace dtrain::device
