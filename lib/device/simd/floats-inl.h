// Kernels for floating-point vectors only: scaling, blending, dot products, conversions.
// SPDX-License-Identifier: Apache-2.0
//
// Included once per target, so it has no ordinary include guard.
#if defined(DTRAIN_DEVICE_SIMD_FLOATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef DTRAIN_DEVICE_SIMD_FLOATS_INL_H_
#undef DTRAIN_DEVICE_SIMD_FLOATS_INL_H_
#else
#define DTRAIN_DEVICE_SIMD_FLOATS_INL_H_
#endif

#include "device/simd/formats-inl.h"
#include "device/simd/loops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace dtrain::device::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A step (loops-inl.h) whose run8() calls run() eight times.
template <class Step> struct EightTimes {
    template <class D> HWY_INLINE void run8(D d, uint64_t i) const {
        const uint64_t lanes = hn::Lanes(d);
        for (uint64_t end = i + 8 * lanes; i < end; i += lanes)
            static_cast<const Step *>(this)->run(d, i);
    }
};

// dst = factor * src
template <class Format> struct MultiplyStep : EightTimes<MultiplyStep<Format>> {
    using Lane = typename Format::Lane;
    using Stored = typename Format::Stored;
    Stored *dst;
    const Stored *src;
    Lane factor;

    template <class D> HWY_INLINE void run(D d, uint64_t i) const {
        Format::store(d, hn::Mul(Format::load(d, src + i), hn::Set(d, factor)), dst + i);
    }
};

template <class Format> void multiply(void *dst, const void *src, uint64_t count, double factor) {
    MultiplyStep<Format> step;
    step.dst = static_cast<typename Format::Stored *>(dst);
    step.src = static_cast<const typename Format::Stored *>(src);
    step.factor = static_cast<typename Format::Lane>(factor);
    for_all(step, count);
}

// dst = x * a + y * b
template <class Format> struct BlendStep : EightTimes<BlendStep<Format>> {
    using Lane = typename Format::Lane;
    using Stored = typename Format::Stored;
    Stored *dst;
    const Stored *a, *b;
    Lane x, y;

    template <class D> HWY_INLINE void run(D d, uint64_t i) const {
        const auto first = hn::Mul(Format::load(d, a + i), hn::Set(d, x));
        const auto second = hn::Mul(Format::load(d, b + i), hn::Set(d, y));
        Format::store(d, hn::Add(first, second), dst + i);
    }
};

template <class Format>
void blend(void *dst, const void *a, double x, const void *b, double y, uint64_t count) {
    BlendStep<Format> step;
    step.dst = static_cast<typename Format::Stored *>(dst);
    step.a = static_cast<const typename Format::Stored *>(a);
    step.b = static_cast<const typename Format::Stored *>(b);
    step.x = static_cast<typename Format::Lane>(x);
    step.y = static_cast<typename Format::Lane>(y);
    for_all(step, count);
}

template <class Format, class D>
HWY_INLINE hn::Vec<D> load_wide(D d, const typename Format::Stored *p) {
    if constexpr (std::is_same_v<typename Format::Lane, double>)
        return Format::load(d, p);
    else
        return hn::PromoteTo(d, Format::load(hn::Rebind<float, D>(), p));
}

// Element i goes into the partial sum i % 8 whatever the vector's size, so that all processors
// compute the same result.
template <class Format> struct Dots {
    using Stored = typename Format::Stored;
    static constexpr uint64_t partial = 8;
    const hn::CappedTag<double, partial> d;
    static constexpr size_t lanes = hn::MaxLanes(hn::CappedTag<double, partial>());
    static constexpr size_t vectors = partial / lanes;
    using V = hn::Vec<hn::CappedTag<double, partial>>;
    V aa[vectors], bb[vectors], ab[vectors];

    HWY_INLINE void add(const Stored *a, const Stored *b) { // 8 elements of each
        for (size_t v = 0; v < vectors; v++) {
            const V x = load_wide<Format>(d, a + v * lanes);
            const V y = load_wide<Format>(d, b + v * lanes);
            aa[v] = hn::Add(aa[v], hn::Mul(x, x));
            bb[v] = hn::Add(bb[v], hn::Mul(y, y));
            ab[v] = hn::Add(ab[v], hn::Mul(x, y));
        }
    }
    HWY_INLINE double total(const V *sums) const {
        double s[partial];
        for (size_t v = 0; v < vectors; v++) hn::StoreU(sums[v], d, s + v * lanes);
        return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
    }
};

template <class Format>
void dots(const void *first, const void *second, uint64_t count, double *sums) {
    using Stored = typename Format::Stored;
    using Sums = Dots<Format>;
    auto *a = static_cast<const Stored *>(first), *b = static_cast<const Stored *>(second);
    Sums run{};
    for (size_t v = 0; v < Sums::vectors; v++) run.aa[v] = run.bb[v] = run.ab[v] = hn::Zero(run.d);
    uint64_t i = 0;
    for (; count - i >= Sums::partial; i += Sums::partial) run.add(a + i, b + i);
    if (i < count) { // zeros complete the last step
        Stored rest_a[Sums::partial] = {}, rest_b[Sums::partial] = {};
        for (uint64_t k = 0; k < count - i; k++) {
            hwy::CopyBytes<sizeof(Stored)>(a + i + k, rest_a + k);
            hwy::CopyBytes<sizeof(Stored)>(b + i + k, rest_b + k);
        }
        run.add(rest_a, rest_b);
    }
    sums[0] = run.total(run.aa);
    sums[1] = run.total(run.bb);
    sums[2] = run.total(run.ab);
}

// The same with 16 partial sums: with 8, processors wait for one addition before the next.
template <class Format> struct Squares {
    using Stored = typename Format::Stored;
    static constexpr uint64_t partial = 16;
    const hn::CappedTag<double, 8> d;
    static constexpr size_t lanes = hn::MaxLanes(hn::CappedTag<double, 8>());
    static constexpr size_t vectors = partial / lanes;
    hn::Vec<hn::CappedTag<double, 8>> sums[vectors];

    HWY_INLINE void add(const Stored *p) { // 16 elements
        for (size_t v = 0; v < vectors; v++) {
            const auto x = load_wide<Format>(d, p + v * lanes);
            sums[v] = hn::Add(sums[v], hn::Mul(x, x));
        }
    }
};

template <class Format> double squares(const void *values, uint64_t count) {
    using Stored = typename Format::Stored;
    using Sums = Squares<Format>;
    auto *a = static_cast<const Stored *>(values);
    Sums run{};
    for (size_t v = 0; v < Sums::vectors; v++) run.sums[v] = hn::Zero(run.d);
    uint64_t i = 0;
    for (; count - i >= Sums::partial; i += Sums::partial) run.add(a + i);
    if (i < count) { // zeros complete the last step
        Stored rest[Sums::partial] = {};
        for (uint64_t k = 0; k < count - i; k++)
            hwy::CopyBytes<sizeof(Stored)>(a + i + k, rest + k);
        run.add(rest);
    }
    double s[Sums::partial];
    for (size_t v = 0; v < Sums::vectors; v++) hn::StoreU(run.sums[v], run.d, s + v * Sums::lanes);
    for (uint64_t half = Sums::partial / 2; half > 0; half /= 2)
        for (uint64_t k = 0; k < half; k++) s[k] += s[k + half];
    return s[0];
}

// Converts from one format to another with the same lanes.
template <class From, class To> struct ConvertStep : EightTimes<ConvertStep<From, To>> {
    using Lane = float;
    const typename From::Stored *src;
    typename To::Stored *dst;

    template <class D> HWY_INLINE void run(D d, uint64_t i) const {
        To::store(d, From::load(d, src + i), dst + i);
    }
};

template <class From, class To> void convert(void *dst, const void *src, uint64_t count) {
    ConvertStep<From, To> step;
    step.src = static_cast<const typename From::Stored *>(src);
    step.dst = static_cast<typename To::Stored *>(dst);
    for_all(step, count);
}

} // namespace dtrain::device::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
