// The loops over memory, for any format and operation.
// SPDX-License-Identifier: Apache-2.0
//
// Included once per target, hence no ordinary include guard.
#if defined(DTRAIN_DEVICE_SIMD_LOOPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef DTRAIN_DEVICE_SIMD_LOOPS_INL_H_
#undef DTRAIN_DEVICE_SIMD_LOOPS_INL_H_
#else
#define DTRAIN_DEVICE_SIMD_LOOPS_INL_H_
#endif

#include <type_traits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace dtrain::device::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A step does elements i to i + Lanes(d) by run(d, i), twice as many by run2(d, i).

// The elements from i on, fewer than a vector, with ever smaller tags: so the last elements go
// through the same code as the others.
template <class Step, class D> HWY_INLINE void tail(const Step &step, D d, uint64_t i, uint64_t n) {
    if (i + hn::Lanes(d) <= n) {
        step.run(d, i);
        i += hn::Lanes(d);
    }
    if constexpr (hn::MaxLanes(D()) > 1)
        tail(step, hn::CappedTag<hn::TFromD<D>, hn::MaxLanes(D()) / 2>(), i, n);
}

template <class Step> HWY_INLINE void for_all(const Step &step, uint64_t n) {
    const hn::ScalableTag<typename Step::Lane> d;
    const uint64_t lanes = hn::Lanes(d);
    uint64_t i = 0;
    for (; n - i >= 4 * lanes; i += 4 * lanes) {
        step.run2(d, i);
        step.run2(d, i + 2 * lanes);
    }
    for (; n - i >= lanes; i += lanes) step.run(d, i);
    if (i < n) tail(step, d, i, n);
}

// out = a op b, each in a format of its own with the same lanes. An f32 running result of bf16
// keeps the order of load2(), which depends on the count only and so is the same in each step.
template <class Op, class Out, class A, class B> struct ReduceStep {
    using Lane = typename Out::Lane;
    typename Out::Stored *out;
    const typename A::Stored *a;
    const typename B::Stored *b;
    template <class D> HWY_INLINE void run(D d, uint64_t i) const {
        Out::store(d, Op::apply(A::load(d, a + i), B::load(d, b + i)), out + i);
    }
    template <class D> HWY_INLINE void run2(D d, uint64_t i) const {
        const auto x = A::load2(d, a + i);
        const auto y = B::load2(d, b + i);
        Out::store2(d, {Op::apply(x.first, y.first), Op::apply(x.second, y.second)}, out + i);
    }
};

template <class Op, class Out, class A, class B>
void reduce(void *out, const void *a, const void *b, uint64_t count) {
    for_all(ReduceStep<Op, Out, A, B>{static_cast<typename Out::Stored *>(out),
                                      static_cast<const typename A::Stored *>(a),
                                      static_cast<const typename B::Stored *>(b)},
            count);
}

template <class Format> struct ScaleStep {
    using Lane = typename Format::Lane;
    typename Format::Stored *dst;
    Lane divisor;
    template <class D> HWY_INLINE void run(D d, uint64_t i) const {
        Format::store(d, hn::Div(Format::load(d, dst + i), hn::Set(d, divisor)), dst + i);
    }
    template <class D> HWY_INLINE void run2(D d, uint64_t i) const {
        const auto x = Format::load2(d, dst + i);
        const auto by = hn::Set(d, divisor);
        Format::store2(d, {hn::Div(x.first, by), hn::Div(x.second, by)}, dst + i);
    }
};

template <class Format> void scale(void *dst, uint64_t count, uint32_t divisor) {
    for_all(ScaleStep<Format>{static_cast<typename Format::Stored *>(dst),
                              static_cast<typename Format::Lane>(divisor)},
            count);
}

// No processor divides vectors of integers.
template <class T> void scale_integers(void *dst, uint64_t count, uint32_t divisor) {
    using Wide = std::conditional_t<hwy::IsSigned<T>(), int64_t, uint64_t>;
    auto *bytes = static_cast<uint8_t *>(dst);
    for (uint64_t i = 0; i < count; i++) {
        T value;
        hwy::CopyBytes<sizeof(T)>(bytes + i * sizeof(T), &value);
        value = static_cast<T>(static_cast<Wide>(value) / static_cast<Wide>(divisor));
        hwy::CopyBytes<sizeof(T)>(&value, bytes + i * sizeof(T));
    }
}

} // namespace dtrain::device::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
