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

// The packs that a thread loads before it uses the first of them: the more bytes are on their way,
// the less it matters how long memory takes. Elements of few bytes need a register each, hence
// fewer packs.
template <class T> constexpr uint32_t packs_at_once = sizeof(T) >= 4 ? 4 : sizeof(T) == 2 ? 2 : 1;

// Packs first, by step.packs<n>(number of the first, how far they are apart), then the rest, by
// step.one(number of the element).
template <class T, class Step> DT_FN void for_all(const Step &step, uint64_t count, bool aligned) {
    constexpr uint32_t per = sizeof(Pack) / sizeof(T), n = packs_at_once<T>;
    const uint64_t packs = aligned ? count / per : 0;
    uint64_t i = DT_FIRST;
    DT_ROLL
    for (; i + (n - 1) * DT_STEP < packs; i += n * DT_STEP) step.template packs<n>(i, DT_STEP);
    DT_ROLL
    for (; i < packs; i += DT_STEP) step.template packs<1>(i, DT_STEP);
    DT_ROLL
    for (i = packs * per + DT_FIRST; i < count; i += DT_STEP) step.one(i);
}

// Some packs of one array.
template <class T, uint32_t n> struct Packs {
    static constexpr uint32_t per = sizeof(Pack) / sizeof(T), elements = n * per;
    Pack all[n];

    DT_MEMBER void load(const void *from, uint64_t first, uint64_t apart) {
        DT_UNROLL
        for (uint32_t p = 0; p < n; p++) all[p] = at<const Pack>(from, first + p * apart);
    }
    DT_MEMBER void store(void *to, uint64_t first, uint64_t apart) const {
        DT_UNROLL
        for (uint32_t p = 0; p < n; p++) at<Pack>(to, first + p * apart) = all[p];
    }
    DT_MEMBER T get(uint32_t e) const { return element<T>(all[e / per], e % per); }
    // In the order of e, from 0 on; others of the same pack are 0 after the first.
    DT_MEMBER void put(uint32_t e, T value) {
        if (e % per == 0) all[e / per] = Pack{};
        put_element<T>(all[e / per], e % per, value);
    }
};

// dsts = srcs[0] op srcs[1] op ..., the running result in registers.
template <class Op> struct Reduce {
    using T = typename Op::Stored;
    const ReduceArguments &a;

    DT_MEMBER void one(uint64_t i) const {
        typename Op::Value value = Op::first(at<const T>(a.srcs[0], i));
        DT_ROLL
        for (uint32_t k = 1; k < a.n; k++) value = Op::add(value, at<const T>(a.srcs[k], i));
        const T result = Op::last(value, a.n);
        DT_ROLL
        for (uint32_t k = 0; k < a.m; k++) at<T>(a.dsts[k], i) = result;
    }
    template <uint32_t n> DT_MEMBER void packs(uint64_t first, uint64_t apart) const {
        using Some = Packs<T, n>;
        typename Op::Value values[Some::elements];
        Some packs;
        packs.load(a.srcs[0], first, apart);
        DT_UNROLL
        for (uint32_t e = 0; e < Some::elements; e++) values[e] = Op::first(packs.get(e));
        DT_ROLL
        for (uint32_t k = 1; k < a.n; k++) {
            packs.load(a.srcs[k], first, apart);
            DT_UNROLL
            for (uint32_t e = 0; e < Some::elements; e++)
                values[e] = Op::add(values[e], packs.get(e));
        }
        DT_UNROLL
        for (uint32_t e = 0; e < Some::elements; e++) packs.put(e, Op::last(values[e], a.n));
        DT_ROLL
        for (uint32_t k = 0; k < a.m; k++) packs.store(a.dsts[k], first, apart);
    }
};
template <class Op> DT_FN void reduce(const ReduceArguments &a) {
    uint64_t odd = 0;
    DT_ROLL
    for (uint32_t k = 0; k < a.n; k++) odd |= misalignment(a.srcs[k]);
    DT_ROLL
    for (uint32_t k = 0; k < a.m; k++) odd |= misalignment(a.dsts[k]);
    for_all<typename Op::Stored>(Reduce<Op>{a}, a.count, odd == 0);
}

// dst[i] = f(src[i]), both of the type T.
template <class T, class F> struct Map {
    void *dst;
    const void *src;
    F f;

    DT_MEMBER void one(uint64_t i) const { at<T>(dst, i) = f(at<const T>(src, i)); }
    template <uint32_t n> DT_MEMBER void packs(uint64_t first, uint64_t apart) const {
        Packs<T, n> from, to;
        from.load(src, first, apart);
        DT_UNROLL
        for (uint32_t e = 0; e < to.elements; e++) to.put(e, f(from.get(e)));
        to.store(dst, first, apart);
    }
};
template <class T, class F> DT_FN void map(void *dst, const void *src, uint64_t count, F f) {
    const bool aligned = (misalignment(dst) | misalignment(src)) == 0;
    for_all<T>(Map<T, F>{dst, src, f}, count, aligned);
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
    const WeighArguments &a;

    DT_MEMBER Lane weight(uint32_t k) const { return Lane(a.weights[k]); }
    DT_MEMBER void one(uint64_t i) const {
        Lane sum = weight(0) * Format::get(at<const T>(a.srcs[0], i));
        DT_ROLL
        for (uint32_t k = 1; k < a.n; k++)
            sum = sum + weight(k) * Format::get(at<const T>(a.srcs[k], i));
        at<T>(a.dst, i) = Format::put(sum);
    }
    template <uint32_t n> DT_MEMBER void packs(uint64_t first, uint64_t apart) const {
        using Some = Packs<T, n>;
        Lane sums[Some::elements];
        Some packs;
        packs.load(a.srcs[0], first, apart);
        DT_UNROLL
        for (uint32_t e = 0; e < Some::elements; e++)
            sums[e] = weight(0) * Format::get(packs.get(e));
        DT_ROLL
        for (uint32_t k = 1; k < a.n; k++) {
            packs.load(a.srcs[k], first, apart);
            DT_UNROLL
            for (uint32_t e = 0; e < Some::elements; e++)
                sums[e] = sums[e] + weight(k) * Format::get(packs.get(e));
        }
        DT_UNROLL
        for (uint32_t e = 0; e < Some::elements; e++) packs.put(e, Format::put(sums[e]));
        packs.store(a.dst, first, apart);
    }
};
template <class Format> DT_FN void weigh(const WeighArguments &a) {
    uint64_t odd = misalignment(a.dst);
    DT_ROLL
    for (uint32_t k = 0; k < a.n; k++) odd |= misalignment(a.srcs[k]);
    for_all<typename Format::Stored>(Weigh<Format>{a}, a.count, odd == 0);
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
