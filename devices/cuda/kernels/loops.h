// The loops over memory. Where all addresses allow it, a thread moves 16 bytes at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "arguments.h"
#include "ops.h"

namespace dtrain::cuda {

// 16 bytes, which GPUs load and store by one instruction.
struct alignas(16) Pack {
    uint32_t words[4];
};
template <class T> DT_FN T element(const Pack &pack, uint32_t i) {
    if constexpr (sizeof(T) == 8)
        return bits_as<T>(uint64_t(pack.words[2 * i]) | uint64_t(pack.words[2 * i + 1]) << 32);
    else if constexpr (sizeof(T) == 4)
        return bits_as<T>(pack.words[i]);
    else if constexpr (sizeof(T) == 2)
        return T(pack.words[i / 2] >> 16 * (i % 2));
    else
        return T(pack.words[i / 4] >> 8 * (i % 4));
}
// The words of the pack are 0 where nothing was put yet.
template <class T> DT_FN void put_element(Pack &pack, uint32_t i, T value) {
    if constexpr (sizeof(T) == 8) {
        const uint64_t bits = bits_as<uint64_t>(value);
        pack.words[2 * i] = uint32_t(bits);
        pack.words[2 * i + 1] = uint32_t(bits >> 32);
    } else if constexpr (sizeof(T) == 4) {
        pack.words[i] = bits_as<uint32_t>(value);
    } else if constexpr (sizeof(T) == 2) {
        pack.words[i / 2] |= uint32_t(uint16_t(value)) << 16 * (i % 2);
    } else {
        pack.words[i / 4] |= uint32_t(uint8_t(value)) << 8 * (i % 4);
    }
}

DT_FN uint64_t misalignment(const void *address) {
    return reinterpret_cast<uintptr_t>(address) % sizeof(Pack);
}

// Packs first, by step.pack(number of the pack), then the rest, by step.one(number of the element).
template <uint32_t per_pack, class Step>
DT_FN void for_all(const Step &step, uint64_t count, bool aligned) {
    const uint64_t packs = aligned ? count / per_pack : 0;
    DT_ROLL
    for (uint64_t i = DT_FIRST; i < packs; i += DT_STEP) step.pack(i);
    DT_ROLL
    for (uint64_t i = packs * per_pack + DT_FIRST; i < count; i += DT_STEP) step.one(i);
}

// dsts = srcs[0] op srcs[1] op ..., the running result in registers.
template <class Op> struct Reduce {
    using T = typename Op::Stored;
    static constexpr uint32_t per = sizeof(Pack) / sizeof(T);
    const ReduceArguments &a;

    DT_MEMBER void one(uint64_t i) const {
        typename Op::Value value = Op::first(at<const T>(a.srcs[0], i));
        DT_ROLL
        for (uint32_t k = 1; k < a.n; k++) value = Op::add(value, at<const T>(a.srcs[k], i));
        const T result = Op::last(value, a.n);
        DT_ROLL
        for (uint32_t k = 0; k < a.m; k++) at<T>(a.dsts[k], i) = result;
    }
    DT_MEMBER void pack(uint64_t i) const {
        typename Op::Value values[per];
        const Pack first = at<const Pack>(a.srcs[0], i);
        DT_UNROLL
        for (uint32_t e = 0; e < per; e++) values[e] = Op::first(element<T>(first, e));
        DT_ROLL
        for (uint32_t k = 1; k < a.n; k++) {
            const Pack next = at<const Pack>(a.srcs[k], i);
            DT_UNROLL
            for (uint32_t e = 0; e < per; e++) values[e] = Op::add(values[e], element<T>(next, e));
        }
        Pack result{};
        DT_UNROLL
        for (uint32_t e = 0; e < per; e++) put_element<T>(result, e, Op::last(values[e], a.n));
        DT_ROLL
        for (uint32_t k = 0; k < a.m; k++) at<Pack>(a.dsts[k], i) = result;
    }
};
template <class Op> DT_FN void reduce(const ReduceArguments &a) {
    uint64_t odd = 0;
    DT_ROLL
    for (uint32_t k = 0; k < a.n; k++) odd |= misalignment(a.srcs[k]);
    DT_ROLL
    for (uint32_t k = 0; k < a.m; k++) odd |= misalignment(a.dsts[k]);
    for_all<Reduce<Op>::per>(Reduce<Op>{a}, a.count, odd == 0);
}

// dst[i] = f(src[i]), both of the type T.
template <class T, class F> struct Map {
    static constexpr uint32_t per = sizeof(Pack) / sizeof(T);
    void *dst;
    const void *src;
    F f;

    DT_MEMBER void one(uint64_t i) const { at<T>(dst, i) = f(at<const T>(src, i)); }
    DT_MEMBER void pack(uint64_t i) const {
        const Pack from = at<const Pack>(src, i);
        Pack to{};
        DT_UNROLL
        for (uint32_t e = 0; e < per; e++) put_element<T>(to, e, f(element<T>(from, e)));
        at<Pack>(dst, i) = to;
    }
};
template <class T, class F> DT_FN void map(void *dst, const void *src, uint64_t count, F f) {
    const bool aligned = (misalignment(dst) | misalignment(src)) == 0;
    for_all<Map<T, F>::per>(Map<T, F>{dst, src, f}, count, aligned);
}

template <class Format> struct DividedBy {
    typename Format::Lane divisor;
    DT_MEMBER typename Format::Stored operator()(typename Format::Stored x) const {
        return Format::put(Format::get(x) / divisor);
    }
};
template <class T> struct DividedBy<Integer<T>> { // by 64 bits: the divisor may exceed T
    using Long = typename Select<(T(-1) < T(0)), int64_t, uint64_t>::Type;
    Long divisor;
    DT_MEMBER T operator()(T x) const { return T(Long(x) / divisor); }
};
template <class Format> struct Times {
    typename Format::Lane factor;
    DT_MEMBER typename Format::Stored operator()(typename Format::Stored x) const {
        return Format::put(Format::get(x) * factor);
    }
};

// dst = weights[0] * srcs[0] + ... Products are rounded before they are added (-fmad=false).
template <class Format> struct Weigh {
    using T = typename Format::Stored;
    using Lane = typename Format::Lane;
    static constexpr uint32_t per = sizeof(Pack) / sizeof(T);
    const WeighArguments &a;

    DT_MEMBER Lane weight(uint32_t k) const { return Lane(a.weights[k]); }
    DT_MEMBER void one(uint64_t i) const {
        Lane sum = weight(0) * Format::get(at<const T>(a.srcs[0], i));
        DT_ROLL
        for (uint32_t k = 1; k < a.n; k++)
            sum = sum + weight(k) * Format::get(at<const T>(a.srcs[k], i));
        at<T>(a.dst, i) = Format::put(sum);
    }
    DT_MEMBER void pack(uint64_t i) const {
        Lane sums[per];
        const Pack first = at<const Pack>(a.srcs[0], i);
        DT_UNROLL
        for (uint32_t e = 0; e < per; e++) sums[e] = weight(0) * Format::get(element<T>(first, e));
        DT_ROLL
        for (uint32_t k = 1; k < a.n; k++) {
            const Pack next = at<const Pack>(a.srcs[k], i);
            DT_UNROLL
            for (uint32_t e = 0; e < per; e++)
                sums[e] = sums[e] + weight(k) * Format::get(element<T>(next, e));
        }
        Pack result{};
        DT_UNROLL
        for (uint32_t e = 0; e < per; e++) put_element<T>(result, e, Format::put(sums[e]));
        at<Pack>(a.dst, i) = result;
    }
};
template <class Format> DT_FN void weigh(const WeighArguments &a) {
    uint64_t odd = misalignment(a.dst);
    DT_ROLL
    for (uint32_t k = 0; k < a.n; k++) odd |= misalignment(a.srcs[k]);
    for_all<Weigh<Format>::per>(Weigh<Format>{a}, a.count, odd == 0);
}

template <class From, class To> DT_FN void convert(const ConvertArguments &a) {
    DT_ROLL
    for (uint64_t i = DT_FIRST; i < a.count; i += DT_STEP)
        at<typename To::Stored>(a.dst, i) =
            To::put(From::get(at<const typename From::Stored>(a.src, i)));
}

template <class To> DT_FN void round_at_random(const RoundArguments &a) {
    DT_ROLL
    for (uint64_t i = DT_FIRST; i < a.count; i += DT_STEP) {
        const uint32_t random = random_word(a.seed, a.first + uint32_t(i));
        at<uint16_t>(a.dst, i) = To::put(To::snapped(at<const float>(a.src, i), random));
    }
}

} // namespace dtrain::cuda
