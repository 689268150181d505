// Converts pushed values to the format of sums, and sums back to values.
// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/clock_sums.h"

#include "device/kernels.h"
#include "ps/optimizer/segment_rules.h"
#include "ps/table/dtype.h"

#include <cmath>
#include <cstring>

namespace dtrain::ps {
namespace {

// Converts element by element from the front, so that it works in place for a smaller dtype.
template <class To, class From> void convert(void *dst, const void *src, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        From from;
        std::memcpy(&from, static_cast<const char *>(src) + i * sizeof from, sizeof from);
        const To to = static_cast<To>(from);
        std::memcpy(static_cast<char *>(dst) + i * sizeof to, &to, sizeof to);
    }
}

// Calls f.operator()<T, S>() with the type T of an integer dtype and the wide type S of its sums.
template <class F> void visit_integer(uint32_t dtype, F &&f) {
    visit_dtype(dtype, [&]<class T>() {
        if constexpr (std::is_integral_v<T>)
            f.template operator()<T, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>();
    });
}

template <class S> void split(char *dst, const void *src, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        S from;
        std::memcpy(&from, static_cast<const char *>(src) + i * sizeof from, sizeof from);
        const S halves[] = {S(from >> 32), S(from & 0xffffffff)};
        std::memcpy(dst + i * sizeof halves, halves, sizeof halves);
    }
}

// Divides the sums in place and stores each mean as one number.
template <class S> void divide_split(char *sums, uint64_t count, double divisor) {
    using Wide = std::conditional_t<std::is_signed_v<S>, __int128, unsigned __int128>;
    for (uint64_t i = 0; i < count; i++) {
        S halves[2];
        std::memcpy(halves, sums + i * sizeof halves, sizeof halves);
        const Wide sum = Wide(halves[0]) * (Wide(1) << 32) + Wide(halves[1]);
        const S mean = S(sum / Wide(divisor));
        std::memcpy(sums + i * sizeof mean, &mean, sizeof mean);
    }
}

void divide(void *g, uint64_t count, uint32_t dtype, double divisor) {
    if (divisor == 1) return;
    const bool whole = divisor >= 1 && divisor <= UINT32_MAX && divisor == std::trunc(divisor);
    if (whole) // always the case for integers
        device::scale(g, count, dtype, static_cast<uint32_t>(divisor));
    else
        device::multiply(g, g, count, dtype, 1 / divisor);
}

} // namespace

uint64_t ClockSums::Format::bytes() const { return parts * device::dtype_size(dtype); }

ClockSums::Format ClockSums::format_of(const TableParams &params) {
    if (is_half(params.dtype)) return {DTRAIN_F32};
    if (params.aggregate != DTRAIN_AVG) return {params.dtype};
    switch (params.dtype) {
    case DTRAIN_I8:
    case DTRAIN_I16:
    case DTRAIN_I32: return {DTRAIN_I64};
    case DTRAIN_U8:
    case DTRAIN_U16:
    case DTRAIN_U32: return {DTRAIN_U64};
    case DTRAIN_I64:
    case DTRAIN_U64: return {params.dtype, 2};
    default: return {params.dtype};
    }
}

uint64_t ClockSums::element_bytes_of(const TableParams &params) {
    return format_of(params).bytes();
}

ClockSums::ClockSums(const TableParams &params, bool of_function)
    : params_(params), own_{computed_dtype(params)},
      format_(of_function ? own_ : format_of(params)) {}

const char *ClockSums::of(const void *g, uint64_t count, double weight) {
    const bool wide = format_ != own_;
    if (!wide && weight == 1) return static_cast<const char *>(g);
    if (taken_.size() < count * element_bytes()) taken_.resize(count * element_bytes());
    char *to = taken_.data();
    if (!wide)
        device::multiply(to, g, count, own_.dtype, weight);
    else if (is_half(own_.dtype))
        device::widen(reinterpret_cast<float *>(to), g, count, own_.dtype);
    else
        visit_integer(own_.dtype, [&]<class T, class S>() {
            format_.parts == 2 ? split<S>(to, g, count) : convert<S, T>(to, g, count);
        });
    if (wide && weight != 1) device::multiply(to, to, count, format_.dtype, weight);
    return to;
}

void ClockSums::add(void *to, const void *from, uint64_t count) const {
    if (format_.parts == 1) return combine(params_, format_.dtype, to, from, count);
    device::reduce(to, from, count * format_.parts, format_.dtype, DTRAIN_SUM);
}

void ClockSums::finish(void *sum, uint64_t count, double divisor) const {
    const bool mean = params_.aggregate == DTRAIN_AVG;
    if (mean && format_.parts == 2)
        return visit_integer(own_.dtype, [&]<class, class S>() {
            divide_split<S>(static_cast<char *>(sum), count, divisor);
        });
    if (mean) divide(sum, count, format_.dtype, divisor);
    if (format_ == own_) return;
    if (is_half(own_.dtype))
        device::narrow(sum, static_cast<const float *>(sum), count, own_.dtype);
    else
        visit_integer(own_.dtype, [&]<class T, class S>() { convert<T, S>(sum, sum, count); });
}

} // namespace dtrain::ps
