// How elements lie in memory and in registers, and how to load and store them.
// SPDX-License-Identifier: Apache-2.0
//
// A format has Stored (the element in memory), Lane (the element in a register), and for any tag d
// of Lane: load(d, p) reads Lanes(d) elements, store(d, v, p) writes as many. load2() and store2()
// handle two full vectors at a time, whose lanes may hold the elements in another order, which is
// the same in both functions. store() makes NaNs canonical. Included once per target, so it has no
// ordinary include guard.
#if defined(DTRAIN_DEVICE_SIMD_FORMATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef DTRAIN_DEVICE_SIMD_FORMATS_INL_H_
#undef DTRAIN_DEVICE_SIMD_FORMATS_INL_H_
#else
#define DTRAIN_DEVICE_SIMD_FORMATS_INL_H_
#endif

#include "device/simd/ops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace dtrain::device::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D> struct Two { hn::Vec<D> first, second; };

// load2() and store2() for a format in which they cannot be faster than load() and store().
template <class Format, class Stored> struct OneByOne {
    template <class D> static HWY_INLINE Two<D> load2(D d, const Stored *p) {
        return {Format::load(d, p), Format::load(d, p + hn::Lanes(d))};
    }
    template <class D> static HWY_INLINE void store2(D d, Two<D> v, Stored *p) {
        Format::store(d, v.first, p);
        Format::store(d, v.second, p + hn::Lanes(d));
    }
};

// Loads and stores bits, because Highway accesses less than 16 bytes of floats as aligned floats.
template <class T> struct Plain : OneByOne<Plain<T>, T> {
    using Stored = T;
    using Lane = T;
    using Bits = hwy::MakeUnsigned<T>;
    template <class D> static HWY_INLINE hn::Vec<D> load(D d, const T *p) {
        const hn::RebindToUnsigned<D> bits;
        return hn::BitCast(d, hn::LoadU(bits, reinterpret_cast<const Bits *>(p)));
    }
    template <class D> static HWY_INLINE void store(D d, hn::Vec<D> v, T *p) {
        const hn::RebindToUnsigned<D> bits;
        hn::StoreU(hn::BitCast(bits, canonical(d, v)), bits, reinterpret_cast<Bits *>(p));
    }
};

// Bytes in 16-bit lanes, because there is no multiplication of bytes; stores the low half.
struct WideByte : OneByOne<WideByte, uint8_t> {
    using Stored = uint8_t;
    using Lane = uint16_t;
    template <class D> static HWY_INLINE hn::Vec<D> load(D d, const uint8_t *p) {
        return hn::PromoteTo(d, hn::LoadU(hn::Rebind<uint8_t, D>(), p));
    }
    template <class D> static HWY_INLINE void store(D, hn::Vec<D> v, uint8_t *p) {
        const hn::Rebind<uint8_t, D> bytes;
        hn::StoreU(hn::TruncateTo(bytes, v), bytes, p);
    }
};

// The upper half of an f32. The two vectors are the even and the odd elements: this takes only a
// shift and a mask, instead of slower moves between 16-bit and 32-bit lanes.
struct Bf16 : OneByOne<Bf16, uint16_t> {
    using Stored = uint16_t;
    using Lane = float;
    template <class D> static HWY_INLINE hn::Vec<D> load(D d, const uint16_t *p) {
        const hn::Rebind<uint32_t, D> words;
        const auto halves = hn::PromoteTo(words, hn::LoadU(hn::Rebind<uint16_t, D>(), p));
        return hn::BitCast(d, hn::ShiftLeft<16>(halves));
    }
    template <class D> static HWY_INLINE void store(D d, hn::Vec<D> v, uint16_t *p) {
        const hn::Rebind<uint16_t, D> halves;
        hn::StoreU(hn::TruncateTo(halves, hn::ShiftRight<16>(rounded(d, v))), halves, p);
    }
#if HWY_TARGET != HWY_SCALAR // HWY_SCALAR has vectors of a single f32
    template <class D> static HWY_INLINE Two<D> load2(D d, const uint16_t *p) {
        const hn::Repartition<uint16_t, D> halves;
        const hn::Rebind<uint32_t, D> words;
        const auto bits = hn::BitCast(words, hn::LoadU(halves, p));
        return {hn::BitCast(d, hn::ShiftLeft<16>(bits)),
                hn::BitCast(d, hn::And(bits, hn::Set(words, 0xffff0000)))};
    }
    template <class D> static HWY_INLINE void store2(D d, Two<D> v, uint16_t *p) {
        const hn::Repartition<uint16_t, D> halves;
        const hn::Rebind<uint32_t, D> words;
        const auto even = hn::ShiftRight<16>(rounded(d, v.first));
        const auto odd = hn::And(rounded(d, v.second), hn::Set(words, 0xffff0000));
        hn::StoreU(hn::BitCast(halves, hn::Or(even, odd)), halves, p);
    }
#endif

  private:
    // Rounds v to the nearest upper half; a tie goes up only if that makes its last bit even.
    template <class D> static HWY_INLINE auto rounded(D d, hn::Vec<D> v) {
        const hn::Rebind<uint32_t, D> words;
        const auto bits = hn::BitCast(words, canonical(d, v));
        const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1));
        return hn::Add(hn::Add(bits, hn::Set(words, 0x7fff)), odd);
    }
};

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3

// IEEE binary16, converted by the processor (F16C, AVX-512).
struct F16 : OneByOne<F16, uint16_t> {
    using Stored = uint16_t;
    using Lane = float;
    template <class D> static HWY_INLINE hn::Vec<D> load(D d, const uint16_t *p) {
        const auto bits = hn::LoadU(hn::Rebind<uint16_t, D>(), p);
        return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), bits));
    }
    template <class D> static HWY_INLINE void store(D d, hn::Vec<D> v, uint16_t *p) {
        const hn::Rebind<uint16_t, D> halves;
        const auto rounded = hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), canonical(d, v));
        hn::StoreU(hn::BitCast(halves, rounded), halves, p);
    }
};

#else

// IEEE binary16, converted by integer and f32 arithmetic. On load, an exact multiplication rebiases
// the exponent, which also normalizes subnormals. On store, subnormals are rounded by adding 0.5,
// whose last bit equals the smallest subnormal.
struct F16 : OneByOne<F16, uint16_t> {
    using Stored = uint16_t;
    using Lane = float;
    template <class D> static HWY_INLINE hn::Vec<D> load(D d, const uint16_t *p) {
        const hn::Rebind<uint32_t, D> words;
        const auto bits = hn::PromoteTo(words, hn::LoadU(hn::Rebind<uint16_t, D>(), p));
        const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(words, 0x8000)));
        const auto rest = hn::ShiftLeft<13>(hn::And(bits, hn::Set(words, 0x7fff)));
        const auto finite = hn::Mul(hn::BitCast(d, rest), hn::Set(d, 0x1p112f));
        const auto special = hn::Or(rest, hn::Set(words, 0x7f800000)); // infinity or NaN
        const auto is_special = hn::Gt(rest, hn::Set(words, (0x7c00 << 13) - 1));
        const auto value = hn::IfThenElse(is_special, special, hn::BitCast(words, finite));
        return hn::BitCast(d, hn::Or(value, sign));
    }
    template <class D> static HWY_INLINE void store(D d, hn::Vec<D> v, uint16_t *p) {
        const hn::Rebind<uint32_t, D> words;
        const hn::Rebind<uint16_t, D> halves;
        const auto bits = hn::BitCast(words, v);
        const auto rest = hn::And(bits, hn::Set(words, 0x7fffffff));
        const auto sign = hn::ShiftRight<16>(hn::Xor(bits, rest));
        const auto odd = hn::And(hn::ShiftRight<13>(rest), hn::Set(words, 1));
        // Rebiases the exponent by 15 - 127 and rounds to nearest even, as above.
        const auto shifted = hn::Add(rest, hn::Set(words, 0xfffu - (112u << 23)));
        const auto normal = hn::ShiftRight<13>(hn::Add(shifted, odd));
        const auto half = hn::Set(d, 0.5f);
        const auto sum = hn::Add(hn::BitCast(d, rest), half);
        const auto subnormal = hn::Sub(hn::BitCast(words, sum), hn::BitCast(words, half));
        const auto is_subnormal = hn::Lt(rest, hn::Set(words, 0x38800000)); // 2^-14
        const auto is_infinite = hn::Gt(rest, hn::Set(words, 0x477fffff));  // from 2^16 on
        const auto is_nan = hn::Gt(rest, hn::Set(words, 0x7f800000));
        auto value = hn::IfThenElse(is_subnormal, subnormal, normal);
        value = hn::IfThenElse(is_infinite, hn::Set(words, 0x7c00), value);
        value = hn::IfThenElse(is_nan, hn::Set(words, 0x7e00), hn::Or(value, sign));
        hn::StoreU(hn::TruncateTo(halves, value), halves, p);
    }
};

#endif

#if HWY_TARGET == HWY_AVX3

// bf16 rounded by AVX512-BF16, for which Highway 1.0 has no target.
struct NativeBf16 : Bf16 {
    static HWY_INLINE void store2(hn::Full512<float> d, Two<hn::Full512<float>> v, uint16_t *p) {
        // The instruction treats subnormals as zero and keeps a NaN's payload; both are rare.
        constexpr int subnormal_or_nan = 0x20 | 0x80 | 0x01;
        const __mmask16 even_special = _mm512_fpclass_ps_mask(v.first.raw, subnormal_or_nan);
        const __mmask16 odd_special = _mm512_fpclass_ps_mask(v.second.raw, subnormal_or_nan);
        if (HWY_UNLIKELY(!_mm512_kortestz(even_special, odd_special))) return Bf16::store2(d, v, p);
        // In assembly, because the intrinsic requires a target that Highway's functions lack.
        __m512i rounded;
        __asm__("vcvtne2ps2bf16 %1, %2, %0" : "=v"(rounded) : "v"(v.first.raw), "v"(v.second.raw));
        const __m512i order = _mm512_loadu_si512(interleave);
        _mm512_storeu_si512(p, _mm512_permutexvar_epi16(order, rounded));
    }

  private:
    // Moves all even elements followed by all odd ones to their order in memory.
    static constexpr uint16_t interleave[] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                              21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                              11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
};

#endif

} // namespace dtrain::device::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
