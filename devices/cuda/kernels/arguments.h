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
struct SpreadArguments {
    void *dsts[max_operands];
    const void *src;
    uint64_t bytes;
    uint32_t m, reserved; // how many dsts
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
struct RoundArguments {
    void *dst;
    const void *src;
    uint64_t count;
    uint32_t seed, first;
};

// DTRAIN_DV_NORM_BLOCK, DTRAIN_DV_ADJUSTS, ...
constexpr uint32_t norm_block = 512, update_adjusts = 1, update_proximal = 2, update_clipped = 4,
                   update_by_row = 8;
struct UpdateNumbers { // as in dtrain_dv_update_t
    double rate, momentum, beta1, beta2, rho, epsilon, l1, l2, ftrl_beta, trust, decay, own_decay,
        clip, clip_norm, first, second, share;
};
struct UpdateArguments {
    void *values;
    const void *gradients;
    void *slots[3];
    double *factors; // of rows: for g, and for the rate
    double *blocks;  // three sums of each block
    uint64_t count, columns, stride;
    UpdateNumbers numbers;
    uint32_t flags, reserved;
};

} // namespace dtrain::cuda
