// Macros that compile the loop of an update rule for each instruction set. Only for the files of
// rules, after all other includes but those of loops.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/rules/kernels.h"
#include "ps/rules/loops/loop.h"

// The loops are written to be vectorized, which gcc 12 does not do at its default level. Loops with
// a square root also need -fno-math-errno, which a pragma cannot set.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math")
#endif

#define DTRAIN_TARGET_generic
#define DTRAIN_TARGET_avx2   __attribute__((target("avx2")))
#define DTRAIN_TARGET_avx512 __attribute__((target("avx512f")))
#define DTRAIN_KERNEL_OF(set, name, type)                                                          \
    DTRAIN_TARGET_##set static void name##_##set(const Step &step, type *w, const type *g,         \
                                                 type *a, type *b, type *c, uint64_t count) {      \
        name##_loop(step, w, g, a, b, c, count);                                                   \
    }
#define DTRAIN_KERNEL_IN(set, name)                                                                \
    DTRAIN_KERNEL_OF(set, name, float)                                                             \
    DTRAIN_KERNEL_OF(set, name, double)

// Defines name_kernels, from the loop of that name.
#ifdef __x86_64__
#define DTRAIN_KERNEL(name)                                                                        \
    DTRAIN_KERNEL_IN(generic, name)                                                                \
    DTRAIN_KERNEL_IN(avx2, name)                                                                   \
    DTRAIN_KERNEL_IN(avx512, name)                                                                 \
    extern const Kernels name##_kernels = {{name##_generic, name##_avx2, name##_avx512},           \
                                           {name##_generic, name##_avx2, name##_avx512}};
#else
#define DTRAIN_KERNEL(name)                                                                        \
    DTRAIN_KERNEL_IN(generic, name)                                                                \
    extern const Kernels name##_kernels = {{name##_generic}, {name##_generic}};
#endif
