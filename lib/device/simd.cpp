// Builds the kernels for every instruction set, and selects those that this processor can run.
// SPDX-License-Identifier: Apache-2.0
//
// Highway includes this file once per target and gives each pass the compiler's target attributes.
// So no file needs its own compiler flags, and code shared between targets (an inline function of
// the standard library, say) cannot be compiled with instructions that a processor lacks.
#include "device/kernel_table.h"

// Excluded: SSSE3 (SSE4 is as old), and SVE, because the loops do not support vectors of unknown
// size.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/simd.cpp"
#include "hwy/foreach_target.h"

#include "device/simd/tables-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace dtrain::device::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3
constexpr Kernels kernels = all_kernels<Bf16>("avx512");
constexpr Kernels kernels_bf16 = all_kernels<NativeBf16>("avx512_bf16");
#elif HWY_TARGET == HWY_AVX2
constexpr Kernels kernels = all_kernels<Bf16>("avx2");
#elif HWY_TARGET == HWY_SSE4
constexpr Kernels kernels = all_kernels<Bf16>("sse4");
#elif HWY_TARGET == HWY_NEON
constexpr Kernels kernels = all_kernels<Bf16>("neon");
#else
constexpr Kernels kernels = all_kernels<Bf16>("generic");
#endif

} // namespace dtrain::device::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "device/cpu.h"

namespace dtrain::device {

const Kernels *supported_kernels(uint32_t rank) {
    struct Variant {
        const Kernels *kernels;
        bool supported;
    };
    const Variant best_first[] = {
#if HWY_TARGETS & HWY_AVX3
        {&N_AVX3::kernels_bf16, cpu_has_avx512_bf16()},
        {&N_AVX3::kernels, cpu_has_avx512()},
#endif
#if HWY_TARGETS & HWY_AVX2
        {&N_AVX2::kernels, cpu_has_avx2()},
#endif
#if HWY_TARGETS & HWY_SSE4
        {&N_SSE4::kernels, cpu_has_sse4()},
#endif
        {&HWY_STATIC_DISPATCH(kernels), true},
    };
    for (const Variant &variant : best_first)
        if (variant.supported && rank-- == 0) return variant.kernels;
    return nullptr;
}

} // namespace dtrain::device
#endif
