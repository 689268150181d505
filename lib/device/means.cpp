// Computes means of integers, and the format in which their sums travel.
// SPDX-License-Identifier: Apache-2.0
#include "device/means.h"

#include "device/kernels.h"
#include "dtrain_basics.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace dtrain::device {
namespace {

// Elements processed at a time, so that they stay in the first-level cache.
constexpr uint64_t summed_at_once = 256;

template <bool is_signed, class Signed, class Unsigned>
using Either = std::conditional_t<is_signed, Signed, Unsigned>;

// A type that holds the sum of 65536 elements.
template <class T>
using Wide = std::conditional_t<
    sizeof(T) <= 2, Either<std::is_signed_v<T>, int32_t, uint32_t>,
    std::conditional_t<sizeof(T) == 4, Either<std::is_signed_v<T>, int64_t, uint64_t>,
                       Either<std::is_signed_v<T>, __int128, unsigned __int128>>>;

// Elements need no alignment.
template <class T> T load(const void *src, uint64_t i) {
    T value;
    std::memcpy(&value, static_cast<const char *>(src) + i * sizeof(T), sizeof(T));
    return value;
}
template <class T> void store(T value, void *dst, uint64_t i) {
    std::memcpy(static_cast<char *>(dst) + i * sizeof(T), &value, sizeof(T));
}

template <class T> T quotient(Wide<T> sum, uint32_t n) {
    if constexpr (sizeof(T) == 8) // most sums do not need the slow 128-bit division
        if (sum == static_cast<T>(sum))
            return static_cast<T>(static_cast<T>(sum) / static_cast<T>(n));
    return static_cast<T>(sum / static_cast<Wide<T>>(n));
}

// Converts elements to the format in which sums travel between ranks. There is no wider type for
// 64-bit integers, so such an element becomes its quotient by n, whose sum fits, and its remainder.
template <class T> void to_sums_of(void *dst, const void *src, uint64_t count, uint32_t n) {
    for (uint64_t i = 0; i < count; i++) {
        const T value = load<T>(src, i);
        if constexpr (sizeof(T) == 8) {
            store(static_cast<T>(value / static_cast<T>(n)), dst, 2 * i);
            store(static_cast<T>(value % static_cast<T>(n)), dst, 2 * i + 1);
        } else {
            store(static_cast<Wide<T>>(value), dst, i);
        }
    }
}

template <class T> void from_sums_of(void *dst, const void *src, uint64_t count, uint32_t n) {
    for (uint64_t i = 0; i < count; i++) {
        Wide<T> sum;
        if constexpr (sizeof(T) == 8)
            sum = static_cast<Wide<T>>(load<T>(src, 2 * i)) * n + load<T>(src, 2 * i + 1);
        else
            sum = load<Wide<T>>(src, i);
        store(quotient<T>(sum, n), dst, i);
    }
}

// Calls f(T()) for the type T of an integer dtype.
template <class F> void visit_integer(uint32_t dtype, F &&f) {
    switch (dtype) {
    case DTRAIN_I8: return f(int8_t());
    case DTRAIN_U8: return f(uint8_t());
    case DTRAIN_I16: return f(int16_t());
    case DTRAIN_U16: return f(uint16_t());
    case DTRAIN_I32: return f(int32_t());
    case DTRAIN_U32: return f(uint32_t());
    case DTRAIN_I64: return f(int64_t());
    case DTRAIN_U64: return f(uint64_t());
    default: return;
    }
}

} // namespace

template <class T> void divide_integers(void *dst, uint64_t count, uint32_t divisor) {
    using Long = Either<std::is_signed_v<T>, int64_t, uint64_t>;
    for (uint64_t i = 0; i < count; i++)
        store(static_cast<T>(Long{load<T>(dst, i)} / Long{divisor}), dst, i);
}

template <class T>
void mean_of_integers(void *const *dsts, uint32_t m, const void *const *srcs, uint32_t n,
                      uint64_t count) {
    for (uint64_t begin = 0; begin < count; begin += summed_at_once) {
        const uint64_t length = std::min(summed_at_once, count - begin);
        Wide<T> sums[summed_at_once];
        for (uint64_t i = 0; i < length; i++) sums[i] = load<T>(srcs[0], begin + i);
        for (uint32_t k = 1; k < n; k++)
            for (uint64_t i = 0; i < length; i++) sums[i] += load<T>(srcs[k], begin + i);
        for (uint64_t i = 0; i < length; i++) {
            const T mean = quotient<T>(sums[i], n);
            for (uint32_t k = 0; k < m; k++) store(mean, dsts[k], begin + i);
        }
    }
}

#define DTRAIN_MEANS_OF(T)                                                                         \
    template void divide_integers<T>(void *, uint64_t, uint32_t);                                  \
    template void mean_of_integers<T>(void *const *, uint32_t, const void *const *, uint32_t,      \
                                      uint64_t);
DTRAIN_MEANS_OF(int8_t)
DTRAIN_MEANS_OF(uint8_t)
DTRAIN_MEANS_OF(int16_t)
DTRAIN_MEANS_OF(uint16_t)
DTRAIN_MEANS_OF(int32_t)
DTRAIN_MEANS_OF(uint32_t)
DTRAIN_MEANS_OF(int64_t)
DTRAIN_MEANS_OF(uint64_t)

SumFormat sum_format(uint32_t dtype) {
    switch (dtype) {
    case DTRAIN_F16: return {DTRAIN_F32, 1};
    case DTRAIN_I8:
    case DTRAIN_I16: return {DTRAIN_I32, 1};
    case DTRAIN_U8:
    case DTRAIN_U16: return {DTRAIN_U32, 1};
    case DTRAIN_I32: return {DTRAIN_I64, 1};
    case DTRAIN_U32: return {DTRAIN_U64, 1};
    case DTRAIN_I64:
    case DTRAIN_U64: return {dtype, 2};
    default: return {dtype, 1};
    }
}

void to_sums(void *dst, const void *src, uint64_t count, uint32_t dtype, uint32_t n) {
    if (dtype == DTRAIN_F16) return widen(static_cast<float *>(dst), src, count, dtype);
    visit_integer(dtype, [&](auto zero) { to_sums_of<decltype(zero)>(dst, src, count, n); });
}

void from_sums(void *dst, void *sums, uint64_t count, uint32_t dtype, uint32_t n) {
    if (dtype != DTRAIN_F16)
        return visit_integer(dtype,
                             [&](auto zero) { from_sums_of<decltype(zero)>(dst, sums, count, n); });
    for (uint64_t at = 0; at < count; at += summed_at_once) {
        const uint64_t length = std::min(summed_at_once, count - at);
        float *from = static_cast<float *>(sums) + at;
        scale(from, length, DTRAIN_F32, n);
        narrow(static_cast<char *>(dst) + at * dtype_size(dtype), from, length, dtype);
    }
}

} // namespace dtrain::device
