// What a reduction does with elements: first() begins with one, add() combines, last() ends.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "formats.h"

namespace dtrain::cuda {

DT_FN bool is_negative(float x) { return bits_as<uint32_t>(x) >> 31 != 0; }
DT_FN bool is_negative(double x) { return bits_as<uint64_t>(x) >> 63 != 0; }
// NaN if either is; -0 is less than +0.
template <class F> DT_FN F least(F a, F b) {
    if (a != a || b != b) return a + b;
    return a < b || (a == b && is_negative(a)) ? a : b;
}
template <class F> DT_FN F greatest(F a, F b) {
    if (a != a || b != b) return a + b;
    return b < a || (a == b && is_negative(b)) ? a : b;
}

template <class T> struct Same { using Type = T; };
template <bool first, class A, class B> struct Select : Same<A> {};
template <class A, class B> struct Select<false, A, B> : Same<B> {};
template <class T> struct Unsigned;
template <> struct Unsigned<int8_t> : Same<uint32_t> {};
template <> struct Unsigned<uint8_t> : Same<uint32_t> {};
template <> struct Unsigned<int16_t> : Same<uint32_t> {};
template <> struct Unsigned<uint16_t> : Same<uint32_t> {};
template <> struct Unsigned<int32_t> : Same<uint32_t> {};
template <> struct Unsigned<uint32_t> : Same<uint32_t> {};
template <> struct Unsigned<int64_t> : Same<uint64_t> {};
template <> struct Unsigned<uint64_t> : Same<uint64_t> {};
// Holds the sum of 65536 elements.
template <class T> struct Wide;
template <> struct Wide<int8_t> : Same<int32_t> {};
template <> struct Wide<uint8_t> : Same<uint32_t> {};
template <> struct Wide<int16_t> : Same<int32_t> {};
template <> struct Wide<uint16_t> : Same<uint32_t> {};
template <> struct Wide<int32_t> : Same<int64_t> {};
template <> struct Wide<uint32_t> : Same<uint64_t> {};
template <> struct Wide<int64_t> : Same<__int128> {};
template <> struct Wide<uint64_t> : Same<unsigned __int128> {};

// Integers wrap: they are combined as unsigned numbers, for which C++ says so.
template <class Lane, bool floating> struct Arithmetic {
    DT_FN Lane sum(Lane a, Lane b) { return a + b; }
    DT_FN Lane product(Lane a, Lane b) { return a * b; }
    DT_FN Lane min(Lane a, Lane b) { return least(a, b); }
    DT_FN Lane max(Lane a, Lane b) { return greatest(a, b); }
};
template <class Lane> struct Arithmetic<Lane, false> {
    using U = typename Unsigned<Lane>::Type;
    DT_FN Lane sum(Lane a, Lane b) { return Lane(U(a) + U(b)); }
    DT_FN Lane product(Lane a, Lane b) { return Lane(U(a) * U(b)); }
    DT_FN Lane min(Lane a, Lane b) { return a < b ? a : b; }
    DT_FN Lane max(Lane a, Lane b) { return a < b ? b : a; }
};

// The part that most ops share.
template <class Format> struct Plain {
    using Stored = typename Format::Stored;
    using Value = typename Format::Lane; // of the running result
    using Math = Arithmetic<Value, Format::floating>;
    DT_FN Value first(Stored x) { return Format::get(x); }
    DT_FN Stored last(Value x, uint32_t) { return Format::put(x); }
};
template <class Format> struct Sum : Plain<Format> {
    using P = Plain<Format>;
    DT_FN typename P::Value add(typename P::Value a, typename P::Stored b) {
        return P::Math::sum(a, Format::get(b));
    }
};
template <class Format> struct Prod : Plain<Format> {
    using P = Plain<Format>;
    DT_FN typename P::Value add(typename P::Value a, typename P::Stored b) {
        return P::Math::product(a, Format::get(b));
    }
};
template <class Format> struct Min : Plain<Format> {
    using P = Plain<Format>;
    DT_FN typename P::Value add(typename P::Value a, typename P::Stored b) {
        return P::Math::min(a, Format::get(b));
    }
};
template <class Format> struct Max : Plain<Format> {
    using P = Plain<Format>;
    DT_FN typename P::Value add(typename P::Value a, typename P::Stored b) {
        return P::Math::max(a, Format::get(b));
    }
};
template <class Format> struct BitAnd : Plain<Format> {
    using T = typename Format::Stored;
    DT_FN T add(T a, T b) { return T(a & b); }
};
template <class Format> struct BitOr : Plain<Format> {
    using T = typename Format::Stored;
    DT_FN T add(T a, T b) { return T(a | b); }
};
template <class Format> struct BitXor : Plain<Format> {
    using T = typename Format::Stored;
    DT_FN T add(T a, T b) { return T(a ^ b); }
};

// The mean. Of integers it is that of the exact sum.
template <class Format, bool floating = Format::floating> struct Mean : Sum<Format> {
    using P = Plain<Format>;
    DT_FN typename P::Stored last(typename P::Value x, uint32_t n) {
        return Format::put(x / typename P::Value(n));
    }
};
template <class Format> struct Mean<Format, false> {
    using Stored = typename Format::Stored;
    using Value = typename Wide<Stored>::Type;
    DT_FN Value first(Stored x) { return Value(x); }
    DT_FN Value add(Value a, Stored b) { return a + Value(b); }
    DT_FN Stored last(Value sum, uint32_t n) {
        if constexpr (sizeof(Stored) == 8) // most sums do not need the slow 128-bit division
            if (sum == Value(Stored(sum))) return Stored(Stored(sum) / Stored(n));
        return Stored(sum / Value(n));
    }
};

} // namespace dtrain::cuda
