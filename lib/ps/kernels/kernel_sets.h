// The instruction sets that the kernels are compiled for. Only for kernels_*.cpp and
// kernel_tables.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/kernels/kernels.h"

// Each set is a namespace; DTRAIN_TARGET_<set> is the attribute of its functions.
#define DTRAIN_TARGET_generic
#define DTRAIN_TARGET_avx2   __attribute__((target("avx2")))
#define DTRAIN_TARGET_avx512 __attribute__((target("avx512f")))

#define DTRAIN_KERNEL_OF(set, name, type)                                                          \
    DTRAIN_TARGET_##set void name(const Step &step, type *w, const type *g, type *a, type *b,      \
                                  type *c, uint64_t count)
#define DTRAIN_DECLARE_KERNEL(set, name)                                                           \
    DTRAIN_KERNEL_OF(set, name, float);                                                            \
    DTRAIN_KERNEL_OF(set, name, double);

namespace dtrain::ps {

namespace generic {
#define DTRAIN_DECLARE_GENERIC(name) DTRAIN_DECLARE_KERNEL(generic, name)
DTRAIN_EACH_KERNEL(DTRAIN_DECLARE_GENERIC)
} // namespace generic
#ifdef __x86_64__
namespace avx2 {
#define DTRAIN_DECLARE_AVX2(name) DTRAIN_DECLARE_KERNEL(avx2, name)
DTRAIN_EACH_KERNEL(DTRAIN_DECLARE_AVX2)
} // namespace avx2
namespace avx512 {
#define DTRAIN_DECLARE_AVX512(name) DTRAIN_DECLARE_KERNEL(avx512, name)
DTRAIN_EACH_KERNEL(DTRAIN_DECLARE_AVX512)
} // namespace avx512
#endif

} // namespace dtrain::ps
