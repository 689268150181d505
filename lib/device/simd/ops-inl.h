// The operations on vectors.
// SPDX-License-Identifier: Apache-2.0
//
// Included once per target, so it has no ordinary include guard.
#if defined(DTRAIN_DEVICE_SIMD_OPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef DTRAIN_DEVICE_SIMD_OPS_INL_H_
#undef DTRAIN_DEVICE_SIMD_OPS_INL_H_
#else
#define DTRAIN_DEVICE_SIMD_OPS_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace dtrain::device::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D> HWY_INLINE hn::Vec<D> quiet_nan(D d) {
    constexpr bool is_double = sizeof(hn::TFromD<D>) == 8;
    using Bits = hwy::MakeUnsigned<hn::TFromD<D>>;
    constexpr auto bits = is_double ? Bits(0x7ff8000000000000) : Bits(0x7fc00000);
    return hn::BitCast(d, hn::Set(hn::RebindToUnsigned<D>(), bits));
}

// Replaces every NaN by the same one, because the NaN that an addition returns differs between
// processors, and between compilers too, which may swap operands.
template <class D> HWY_INLINE hn::Vec<D> canonical(D d, hn::Vec<D> v) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>())
        return hn::IfThenElse(hn::IsNaN(v), quiet_nan(d), v);
    else
        return v;
}

struct Sum {
    template <class V> static HWY_INLINE V apply(V a, V b) { return hn::Add(a, b); }
};

struct Prod {
    template <class V> static HWY_INLINE V apply(V a, V b) { return hn::Mul(a, b); }
};

// For a NaN and a number, or for two zeros, the instructions return one operand by position. So
// both orders are computed: their results differ only in these cases, and combining the two bit
// patterns decides. For MIN the union keeps the sign of -0, for MAX the intersection drops it.
struct Min {
    template <class V> static HWY_INLINE V apply(V a, V b) {
        using D = hn::DFromV<V>;
        if constexpr (hwy::IsFloat<hn::TFromD<D>>())
            return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::IsNaN(b)), quiet_nan(D()),
                                  hn::Or(hn::Min(a, b), hn::Min(b, a)));
        else
            return hn::Min(a, b);
    }
};

struct Max {
    template <class V> static HWY_INLINE V apply(V a, V b) {
        using D = hn::DFromV<V>;
        if constexpr (hwy::IsFloat<hn::TFromD<D>>())
            return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::IsNaN(b)), quiet_nan(D()),
                                  hn::And(hn::Max(a, b), hn::Max(b, a)));
        else
            return hn::Max(a, b);
    }
};

struct BitAnd {
    template <class V> static HWY_INLINE V apply(V a, V b) { return hn::And(a, b); }
};

struct BitOr {
    template <class V> static HWY_INLINE V apply(V a, V b) { return hn::Or(a, b); }
};

struct BitXor {
    template <class V> static HWY_INLINE V apply(V a, V b) { return hn::Xor(a, b); }
};

} // namespace dtrain::device::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
