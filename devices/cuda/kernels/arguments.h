// The arguments of the kernels: each takes one of these structs, by value.
// SPDX-License-Identifier: Apache-2.0
//
// Included by the plugin, which fills them in, and by the kernels. Addresses are the device's.
#pragma once
#include <stdint.h>

namespace dtrain::cuda {

enum { max_operands = 64, block_threads = 256 };

struct ReduceArguments {
    void *dsts[max_operands];
    const void *srcs[max_operands];
    uint64_t count;
    uint32_t m, n; // how many dsts and srcs
};
struct ScaleArguments {
    void *dst;
    const void *src;
    uint64_t count;
    uint32_t divisor, reserved;
};
struct MultiplyArguments {
    void *dst;
    const void *src;
    uint64_t count;
    double factor;
};
struct WeighArguments {
    void *dst;
    uint64_t count;
    uint64_t n;
    const void *srcs[max_operands];
    double weights[max_operands];
};
struct ConvertArguments {
    void *dst;
    const void *src;
    uint64_t count;
};
struct RowArguments {
    void *dst;
    const void *src;
    const uint64_t *rows;
    uint64_t count, row_bytes, row_limit;
};

} // namespace dtrain::cuda
