// The table of kernels for each instruction set, and the choice of the best one.
// SPDX-License-Identifier: Apache-2.0
#include "device/cpu.h"
#include "ps/kernels/kernel_sets.h"

namespace dtrain::ps {
namespace {

#define DTRAIN_GENERIC(name) {generic::name, generic::name},
constexpr KernelTable generic_table = {"generic", DTRAIN_EACH_KERNEL(DTRAIN_GENERIC)};
#ifdef __x86_64__
#define DTRAIN_AVX2(name)   {avx2::name, avx2::name},
#define DTRAIN_AVX512(name) {avx512::name, avx512::name},
constexpr KernelTable avx2_table = {"avx2", DTRAIN_EACH_KERNEL(DTRAIN_AVX2)};
constexpr KernelTable avx512_table = {"avx512", DTRAIN_EACH_KERNEL(DTRAIN_AVX512)};
#endif

} // namespace

const KernelTable *supported_kernels(uint32_t rank) {
#ifdef __x86_64__
    if (device::cpu_has_avx512() && rank-- == 0) return &avx512_table;
    if (device::cpu_has_avx2() && rank-- == 0) return &avx2_table;
#endif
    return rank == 0 ? &generic_table : nullptr;
}

} // namespace dtrain::ps
