// Random rounding that keeps the mean exact: a function of a seed and an element's number.
// SPDX-License-Identifier: Apache-2.0
//
// Included once per target, so it has no ordinary include guard.
#if defined(DTRAIN_DEVICE_SIMD_RANDOM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef DTRAIN_DEVICE_SIMD_RANDOM_INL_H_
#undef DTRAIN_DEVICE_SIMD_RANDOM_INL_H_
#else
#define DTRAIN_DEVICE_SIMD_RANDOM_INL_H_
#endif

#include "device/simd/floats-inl.h"
#include "device/simd/formats-inl.h"
#include "device/simd/loops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace dtrain::device::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D> using Words = hn::Vec<hn::RebindToUnsigned<D>>;

// Returns 32 random bits for each of the elements from number `first` on.
template <class D> HWY_INLINE Words<D> random_words(D, uint32_t seed, uint32_t first) {
    const hn::RebindToUnsigned<D> words;
    // A constant Iota plus `first`, because Highway's Iota of a variable goes through memory.
    const auto number = hn::Add(hn::Iota(words, 0), hn::Set(words, first));
    // The finalizer of MurmurHash3 (Appleby, public domain).
    auto h = hn::Xor(hn::Set(words, seed), hn::Mul(number, hn::Set(words, 0x9e3779b9u)));
    h = hn::Mul(hn::Xor(h, hn::ShiftRight<16>(h)), hn::Set(words, 0x85ebca6bu));
    h = hn::Mul(hn::Xor(h, hn::ShiftRight<13>(h)), hn::Set(words, 0xc2b2ae35u));
    return hn::Xor(h, hn::ShiftRight<16>(h));
}

// Rounds down to a whole number, or up with the probability of the fraction.
template <class D> HWY_INLINE hn::Vec<D> whole_at_random(D d, hn::Vec<D> v, Words<D> random) {
    const hn::RebindToSigned<D> integers;
    const auto bits = hn::BitCast(integers, hn::ShiftRight<8>(random));
    const auto uniform = hn::Mul(hn::ConvertTo(d, bits), hn::Set(d, 0x1p-24f));
    const auto below = hn::Floor(v);
    const auto up = hn::Gt(hn::Sub(v, below), uniform);
    return hn::Add(below, hn::IfThenElseZero(up, hn::Set(d, 1.0f)));
}

// Clears the low `bits` bits, after carrying with the probability of their value out of 2^bits.
template <int bits, class V> HWY_INLINE V cut_at_random(V magnitude, V random) {
    return hn::ShiftLeft<bits>(
        hn::ShiftRight<bits>(hn::Add(magnitude, hn::ShiftRight<32 - bits>(random))));
}

// Returns a neighboring number of v in the format, as f32; v itself if it is beyond the largest
// number, or not a number.
template <class D> HWY_INLINE hn::Vec<D> snapped(D d, Bf16, hn::Vec<D> v, Words<D> random) {
    const hn::RebindToUnsigned<D> words;
    const auto bits = hn::BitCast(words, v);
    const auto magnitude = hn::And(bits, hn::Set(words, 0x7fffffff));
    const auto fits = hn::Lt(magnitude, hn::Set(words, 0x7f7f0000));
    return hn::BitCast(d, hn::IfThenElse(fits, cut_at_random<16>(bits, random), bits));
}
template <class D> HWY_INLINE hn::Vec<D> snapped(D d, F16, hn::Vec<D> v, Words<D> random) {
    const hn::RebindToUnsigned<D> words;
    const auto bits = hn::BitCast(words, v);
    const auto magnitude = hn::And(bits, hn::Set(words, 0x7fffffff));
    const auto fits = hn::Lt(magnitude, hn::Set(words, 0x477fe000)); // 65504
    const auto normal = hn::IfThenElse(fits, cut_at_random<13>(bits, random), bits);
    // Below 2^-14 numbers are 2^-24 apart.
    const auto steps = hn::Mul(hn::BitCast(d, magnitude), hn::Set(d, 0x1p24f));
    const auto small = hn::Mul(whole_at_random(d, steps, random), hn::Set(d, 0x1p-24f));
    const auto is_small = hn::Lt(magnitude, hn::Set(words, 0x38800000));
    const auto sign = hn::Xor(bits, magnitude);
    return hn::BitCast(d,
                       hn::IfThenElse(is_small, hn::Or(hn::BitCast(words, small), sign), normal));
}

template <class Format> struct NarrowRandomlyStep : EightTimes<NarrowRandomlyStep<Format>> {
    using Lane = float;
    const float *src;
    uint16_t *dst;
    uint32_t seed, first;

    template <class D> HWY_INLINE void run(D d, uint64_t i) const {
        const auto random = random_words(d, seed, first + static_cast<uint32_t>(i));
        Format::store(d, snapped(d, Format(), Plain<float>::load(d, src + i), random), dst + i);
    }
};

template <class Format>
void narrow_randomly(void *dst, const float *src, uint64_t count, uint32_t seed, uint32_t first) {
    NarrowRandomlyStep<Format> step;
    step.src = src;
    step.dst = static_cast<uint16_t *>(dst);
    step.seed = seed;
    step.first = first;
    for_all(step, count);
}

} // namespace dtrain::device::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
