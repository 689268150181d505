// The kernels of one target as tables.
// SPDX-License-Identifier: Apache-2.0
//
// Included once per target, so it has no ordinary include guard.
#if defined(DTRAIN_DEVICE_SIMD_TABLES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef DTRAIN_DEVICE_SIMD_TABLES_INL_H_
#undef DTRAIN_DEVICE_SIMD_TABLES_INL_H_
#else
#define DTRAIN_DEVICE_SIMD_TABLES_INL_H_
#endif

#include "device/kernel_table.h"
#include "device/means.h"
#include "device/simd/bytes-inl.h"
#include "device/simd/floats-inl.h"
#include "device/simd/formats-inl.h"
#include "device/simd/loops-inl.h"
#include "device/simd/ops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace dtrain::device::HWY_NAMESPACE {

template <class Format>
inline constexpr DtypeKernels float_kernels = {.ops = {nullptr, // 0 is no op
                                                       &reduce<Sum, Format>, &mean<Format>,
                                                       &reduce<Prod, Format>, &reduce<Min, Format>,
                                                       &reduce<Max, Format>},
                                               .scale = &scale<Format>,
                                               .multiply = &multiply<Format>,
                                               .blend = &blend<Format>,
                                               .dots = &dots<Format>,
                                               .squares = &squares<Format>,
                                               .weigh = &weigh<Format>};

// For formats that are computed in f32.
template <class Format> inline constexpr DtypeKernels half_kernels() {
    DtypeKernels kernels = float_kernels<Format>;
    kernels.widen = &convert<Format, Plain<float>>;
    kernels.narrow = &convert<Plain<float>, Format>;
    kernels.narrow_randomly = &narrow_randomly<Format>;
    return kernels;
}
template <class Format> inline constexpr DtypeKernels half = half_kernels<Format>();

// Sums, products and bitwise operations are equal for signed and unsigned integers.
template <class T, class Unsigned = Plain<hwy::MakeUnsigned<T>>, class Product = Unsigned>
inline constexpr DtypeKernels integer_kernels = {
    .ops = {nullptr, // 0 is no op
            &reduce<Sum, Unsigned>, &mean_of_integers<T>, &reduce<Prod, Product>,
            &reduce<Min, Plain<T>>, &reduce<Max, Plain<T>>, &reduce<BitAnd, Unsigned>,
            &reduce<BitOr, Unsigned>, &reduce<BitXor, Unsigned>},
    .scale = &divide_integers<T>,
    .weigh = nullptr};

template <class Bf16Format> inline constexpr Kernels all_kernels(const char *target) {
    return {target,
            {nullptr, // 0 is no dtype
             &float_kernels<Plain<float>>, &float_kernels<Plain<double>>, &half<F16>,
             &half<Bf16Format>, &integer_kernels<int8_t, Plain<uint8_t>, WideByte>,
             &integer_kernels<uint8_t, Plain<uint8_t>, WideByte>, &integer_kernels<int16_t>,
             &integer_kernels<uint16_t>, &integer_kernels<int32_t>, &integer_kernels<uint32_t>,
             &integer_kernels<int64_t>, &integer_kernels<uint64_t>},
            &largest,
            &quantize,
            &quantize_randomly,
            &dequantize};
}

} // namespace dtrain::device::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
