// The loops over memory, for any format and operation.
// SPDX-License-Identifier: Apache-2.0
//
// Included once per target, so it has no ordinary include guard.
#if defined(DTRAIN_DEVICE_SIMD_LOOPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef DTRAIN_DEVICE_SIMD_LOOPS_INL_H_
#undef DTRAIN_DEVICE_SIMD_LOOPS_INL_H_
#else
#define DTRAIN_DEVICE_SIMD_LOOPS_INL_H_
#endif

#include <type_traits>

#include "device/simd/formats-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace dtrain::device::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A step processes elements i to i + Lanes(d) in run(d, i), and eight times as many in run8(d, i).

// Processes the elements from i on, fewer than a vector, with ever smaller tags, so that the last
// elements go through the same code as the others.
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
    for (; n - i >= 8 * lanes; i += 8 * lanes) step.run8(d, i);
    for (; n - i >= lanes; i += lanes) step.run(d, i);
    if (i < n) tail(step, d, i, n);
}

// What happens to the result of a reduction before it is stored.
struct AsItIs {
    template <class D, class V> HWY_INLINE V apply(D, V v) const { return v; }
};
template <class Lane> struct Divided {
    Lane divisor;
    template <class D> HWY_INLINE hn::Vec<D> apply(D d, hn::Vec<D> v) const {
        return hn::Div(v, hn::Set(d, divisor));
    }
    template <class D> HWY_INLINE Two<D> apply(D d, Two<D> v) const {
        return {apply(d, v.first), apply(d, v.second)};
    }
};

// dsts = srcs[0] op srcs[1] op ...; the running result stays in registers. Processing eight vectors
// per source makes up for switching between sources, and reading all sources side by side keeps
// more of the memory busy than reading one after the other.
template <class Op, class Format, class Last> struct ReduceStep {
    using Lane = typename Format::Lane;
    using Stored = typename Format::Stored;
    void *const *dsts;
    const void *const *srcs;
    uint32_t m, n; // number of dsts and srcs
    Last last;

    const Stored *source(uint32_t k, uint64_t i) const {
        return static_cast<const Stored *>(srcs[k]) + i;
    }
    template <class D> static HWY_INLINE void accumulate(D d, Two<D> &result, const Stored *p) {
        const Two<D> more = Format::load2(d, p);
        result.first = Op::apply(result.first, more.first);
        result.second = Op::apply(result.second, more.second);
    }
    template <class D> HWY_INLINE void run(D d, uint64_t i) const {
        auto result = Format::load(d, source(0, i));
        for (uint32_t k = 1; k < n; k++) result = Op::apply(result, Format::load(d, source(k, i)));
        result = last.apply(d, result);
        for (uint32_t k = 0; k < m; k++)
            Format::store(d, result, static_cast<Stored *>(dsts[k]) + i);
    }
    template <class D> HWY_INLINE void run8(D d, uint64_t i) const {
        const uint64_t two = 2 * hn::Lanes(d);
        const Stored *p = source(0, i);
        Two<D> r0 = Format::load2(d, p), r1 = Format::load2(d, p + two);
        Two<D> r2 = Format::load2(d, p + 2 * two), r3 = Format::load2(d, p + 3 * two);
        for (uint32_t k = 1; k < n; k++) {
            p = source(k, i);
            accumulate(d, r0, p);
            accumulate(d, r1, p + two);
            accumulate(d, r2, p + 2 * two);
            accumulate(d, r3, p + 3 * two);
        }
        r0 = last.apply(d, r0);
        r1 = last.apply(d, r1);
        r2 = last.apply(d, r2);
        r3 = last.apply(d, r3);
        for (uint32_t k = 0; k < m; k++) {
            Stored *to = static_cast<Stored *>(dsts[k]);
            Format::store2(d, r0, to + i);
            Format::store2(d, r1, to + i + two);
            Format::store2(d, r2, to + i + 2 * two);
            Format::store2(d, r3, to + i + 3 * two);
        }
    }
};

template <class Op, class Format>
void reduce(void *const *dsts, uint32_t m, const void *const *srcs, uint32_t n, uint64_t count) {
    for_all(ReduceStep<Op, Format, AsItIs>{dsts, srcs, m, n, {}}, count);
}

template <class Format>
void mean(void *const *dsts, uint32_t m, const void *const *srcs, uint32_t n, uint64_t count) {
    using Last = Divided<typename Format::Lane>;
    const Last last{static_cast<typename Format::Lane>(n)};
    for_all(ReduceStep<Sum, Format, Last>{dsts, srcs, m, n, last}, count);
}

// dst = weights[0] * srcs[0] + weights[1] * srcs[1] + ... Each product is rounded before it is
// added: a fused multiply-add, which some processors lack, would give other bits.
template <class Format> struct WeighStep {
    using Lane = typename Format::Lane;
    using Stored = typename Format::Stored;
    Stored *dst;
    const void *const *srcs;
    const double *weights;
    uint32_t n;

    template <class D> HWY_INLINE hn::Vec<D> weight(D d, uint32_t k) const {
        return hn::Set(d, static_cast<Lane>(weights[k]));
    }
    const Stored *source(uint32_t k, uint64_t i) const {
        return static_cast<const Stored *>(srcs[k]) + i;
    }
    template <class D>
    static HWY_INLINE void accumulate(D d, Two<D> &sum, hn::Vec<D> w, const Stored *p) {
        const Two<D> more = Format::load2(d, p);
        sum.first = hn::Add(sum.first, hn::Mul(w, more.first));
        sum.second = hn::Add(sum.second, hn::Mul(w, more.second));
    }
    template <class D> HWY_INLINE void run(D d, uint64_t i) const {
        auto sum = hn::Mul(weight(d, 0), Format::load(d, source(0, i)));
        for (uint32_t k = 1; k < n; k++)
            sum = hn::Add(sum, hn::Mul(weight(d, k), Format::load(d, source(k, i))));
        Format::store(d, sum, dst + i);
    }
    template <class D> HWY_INLINE void run8(D d, uint64_t i) const {
        const uint64_t two = 2 * hn::Lanes(d);
        for (uint64_t end = i + 4 * two; i < end; i += two) {
            Two<D> sum = Format::load2(d, source(0, i));
            const auto first = weight(d, 0);
            sum = {hn::Mul(first, sum.first), hn::Mul(first, sum.second)};
            for (uint32_t k = 1; k < n; k++) accumulate(d, sum, weight(d, k), source(k, i));
            Format::store2(d, sum, dst + i);
        }
    }
};

template <class Format>
void weigh(void *dst, const void *const *srcs, const double *weights, uint32_t n, uint64_t count) {
    for_all(WeighStep<Format>{static_cast<typename Format::Stored *>(dst), srcs, weights, n},
            count);
}

template <class Format> struct ScaleStep {
    using Lane = typename Format::Lane;
    typename Format::Stored *dst;
    Lane divisor;

    template <class D> HWY_INLINE void run(D d, uint64_t i) const {
        Format::store(d, hn::Div(Format::load(d, dst + i), hn::Set(d, divisor)), dst + i);
    }
    template <class D> HWY_INLINE void run8(D d, uint64_t i) const {
        const auto by = hn::Set(d, divisor);
        const uint64_t two = 2 * hn::Lanes(d);
        for (uint64_t end = i + 4 * two; i < end; i += two) {
            const Two<D> x = Format::load2(d, dst + i);
            Format::store2(d, {hn::Div(x.first, by), hn::Div(x.second, by)}, dst + i);
        }
    }
};

template <class Format> void scale(void *dst, uint64_t count, uint32_t divisor) {
    for_all(ScaleStep<Format>{static_cast<typename Format::Stored *>(dst),
                              static_cast<typename Format::Lane>(divisor)},
            count);
}

} // namespace dtrain::device::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
