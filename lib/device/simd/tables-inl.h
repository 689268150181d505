// The kernels of one target as tables.
// SPDX-License-Identifier: Apache-2.0
//
// Included once per target, hence no ordinary include guard.
#if defined(DTRAIN_DEVICE_SIMD_TABLES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef DTRAIN_DEVICE_SIMD_TABLES_INL_H_
#undef DTRAIN_DEVICE_SIMD_TABLES_INL_H_
#else
#define DTRAIN_DEVICE_SIMD_TABLES_INL_H_
#endif

#include "device/kernel_table.h"
#include "device/simd/formats-inl.h"
#include "device/simd/loops-inl.h"
#include "device/simd/ops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace dtrain::device::HWY_NAMESPACE {

template <class Op, class Format, class Wide = Format>
inline constexpr ReduceKernel kernel = {
    &reduce<Op, Format, Format, Format>, &reduce<Op, Wide, Format, Format>,
    &reduce<Op, Wide, Wide, Format>, &reduce<Op, Format, Wide, Format>};

template <class Format, class Wide = Format>
inline constexpr DtypeKernels float_kernels = {.wide_size = sizeof(typename Wide::Stored),
                                               .ops = {{}, // no op is 0
                                                       kernel<Sum, Format, Wide>,
                                                       kernel<Sum, Format, Wide>, // AVG
                                                       kernel<Prod, Format, Wide>,
                                                       kernel<Min, Format, Wide>,
                                                       kernel<Max, Format, Wide>},
                                               .scale = &scale<Format>};

// Sums, products and bits are the same with and without a sign.
template <class T, class Unsigned = Plain<hwy::MakeUnsigned<T>>, class Product = Unsigned>
inline constexpr DtypeKernels integer_kernels = {.wide_size = sizeof(T),
                                                 .ops = {{}, // no op is 0
                                                         kernel<Sum, Unsigned>,
                                                         kernel<Sum, Unsigned>, // AVG
                                                         kernel<Prod, Product>,
                                                         kernel<Min, Plain<T>>,
                                                         kernel<Max, Plain<T>>,
                                                         kernel<BitAnd, Unsigned>,
                                                         kernel<BitOr, Unsigned>,
                                                         kernel<BitXor, Unsigned>},
                                                 .scale = &scale_integers<T>};

template <class Bf16Format> inline constexpr Kernels all_kernels(const char *target) {
    return {target,
            {nullptr, // no dtype is 0
             &float_kernels<Plain<float>>, &float_kernels<Plain<double>>,
             &float_kernels<F16, Plain<float>>, &float_kernels<Bf16Format, Plain<float>>,
             &integer_kernels<int8_t, Plain<uint8_t>, WideByte>,
             &integer_kernels<uint8_t, Plain<uint8_t>, WideByte>, &integer_kernels<int16_t>,
             &integer_kernels<uint16_t>, &integer_kernels<int32_t>, &integer_kernels<uint32_t>,
             &integer_kernels<int64_t>, &integer_kernels<uint64_t>}};
}

} // namespace dtrain::device::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
