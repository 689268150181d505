// Kernels between f32 and int8: the largest magnitude, rounding to bytes and back.
// SPDX-License-Identifier: Apache-2.0
//
// Included once per target, so it has no ordinary include guard.
#if defined(DTRAIN_DEVICE_SIMD_BYTES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef DTRAIN_DEVICE_SIMD_BYTES_INL_H_
#undef DTRAIN_DEVICE_SIMD_BYTES_INL_H_
#else
#define DTRAIN_DEVICE_SIMD_BYTES_INL_H_
#endif

#include "device/simd/floats-inl.h"
#include "device/simd/formats-inl.h"
#include "device/simd/loops-inl.h"
#include "device/simd/random-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace dtrain::device::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Returns bits without the sign, which are ordered like the magnitudes, with NaN above infinity.
inline uint32_t largest(const float *src, uint64_t count) {
    using D = hn::CappedTag<float, 16>;
    const D d;
    const hn::RebindToSigned<D> bits;
    const uint64_t lanes = hn::Lanes(d);
    const auto mask = hn::Set(bits, 0x7fffffff);
    auto magnitude = [&](const float *p) {
        return hn::And(hn::BitCast(bits, Plain<float>::load(d, p)), mask);
    };
    auto a = hn::Zero(bits), b = a;
    uint64_t i = 0;
    for (; count - i >= 2 * lanes; i += 2 * lanes) {
        a = hn::Max(a, magnitude(src + i));
        b = hn::Max(b, magnitude(src + i + lanes));
    }
    int32_t parts[hn::MaxLanes(D())], most = 0;
    hn::StoreU(hn::Max(a, b), bits, parts);
    for (uint64_t k = 0; k < lanes; k++) most = parts[k] > most ? parts[k] : most;
    for (; i < count; i++) {
        int32_t rest;
        hwy::CopyBytes<sizeof rest>(src + i, &rest);
        rest &= 0x7fffffff;
        most = rest > most ? rest : most;
    }
    return static_cast<uint32_t>(most);
}

// Rounds to nearest even.
struct Nearest {
    template <class D> HWY_INLINE hn::Vec<D> round(D, hn::Vec<D> v, uint64_t) const {
        return v; // the conversion to integers rounds to nearest even
    }
};

// Rounds down or up; up with the probability of the fraction.
struct Random {
    uint32_t seed;

    template <class D> HWY_INLINE hn::Vec<D> round(D d, hn::Vec<D> v, uint64_t i) const {
        return whole_at_random(d, v, random_words(d, seed, static_cast<uint32_t>(i)));
    }
};

template <class Rounding> struct QuantizeStep : EightTimes<QuantizeStep<Rounding>> {
    using Lane = float;
    const float *src;
    int8_t *dst;
    float factor;
    Rounding rounding;

    template <class D> HWY_INLINE void run(D d, uint64_t i) const {
        const hn::Rebind<int8_t, D> bytes;
        const auto v = hn::Mul(Plain<float>::load(d, src + i), hn::Set(d, factor));
        const auto most = hn::Set(d, 127.0f), least = hn::Set(d, -127.0f);
        const auto whole = hn::Min(hn::Max(rounding.round(d, v, i), least), most);
        hn::StoreU(hn::DemoteTo(bytes, hn::NearestInt(whole)), bytes, dst + i);
    }
};

template <class Rounding>
void quantize_by(int8_t *dst, const float *src, uint64_t count, float factor, Rounding rounding) {
    QuantizeStep<Rounding> step;
    step.src = src;
    step.dst = dst;
    step.factor = factor;
    step.rounding = rounding;
    for_all(step, count);
}
inline void quantize(int8_t *dst, const float *src, uint64_t count, float factor) {
    quantize_by(dst, src, count, factor, Nearest());
}
inline void quantize_randomly(int8_t *dst, const float *src, uint64_t count, float factor,
                              uint32_t seed) {
    quantize_by(dst, src, count, factor, Random{seed});
}

struct DequantizeStep : EightTimes<DequantizeStep> {
    using Lane = float;
    const int8_t *src;
    float *dst;
    float scale;

    template <class D> HWY_INLINE void run(D d, uint64_t i) const {
        const auto wide =
            hn::PromoteTo(hn::RebindToSigned<D>(), hn::LoadU(hn::Rebind<int8_t, D>(), src + i));
        Plain<float>::store(d, hn::Mul(hn::ConvertTo(d, wide), hn::Set(d, scale)), dst + i);
    }
};

inline void dequantize(float *dst, const int8_t *src, uint64_t count, float scale) {
    DequantizeStep step;
    step.src = src;
    step.dst = dst;
    step.scale = scale;
    for_all(step, count);
}

} // namespace dtrain::device::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
