// SPDX-License-Identifier: Apache-2.0
#include "ps/clock_sums.h"

#include "device/kernels.h"
#include "ps/dtype.h"
#include "ps/segment_rules.h"

#include <cmath>
#include <cstring>

namespace dtrain::ps {
namespace {

// Element by element from the front: to a smaller dtype also in place.
template <class To, class From> void convert(void *dst, const void *src, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        From from;
        std::memcpy(&from, static_cast<const char *>(src) + i * sizeof from, sizeof from);
        const To to = static_cast<To>(from);
        std::memcpy(static_cast<char *>(dst) + i * sizeof to, &to, sizeof to);
    }
}

// f.operator()<T, S>() for the type of an integer dtype and the wide one of its sums.
template <class F> void visit_integer(uint32_t dtype, F &&f) {
    visit_dtype(dtype, [&]<class T>() {
        if constexpr (std::is_integral_v<T>)
            f.template operator()<T, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>();
    });
}

void divide(void *g, uint64_t count, uint32_t dtype, double divisor) {
    if (divisor == 1) return;
    const bool whole = divisor >= 1 && divisor <= UINT32_MAX && divisor == std::trunc(divisor);
    if (whole) // as that of integers always is
        device::scale(g, count, dtype, static_cast<uint32_t>(divisor));
    else
        device::multiply(g, g, count, dtype, 1 / divisor);
}

} // namespace

uint32_t ClockSums::dtype_of(const TableParams &params) {
    if (params.aggregate != DTRAIN_AVG) return params.dtype;
    switch (params.dtype) {
    case DTRAIN_F16: return DTRAIN_F32;
    case DTRAIN_I8:
    case DTRAIN_I16:
    case DTRAIN_I32: return DTRAIN_I64;
    case DTRAIN_U8:
    case DTRAIN_U16:
    case DTRAIN_U32: return DTRAIN_U64;
    default: return params.dtype;
    }
}

ClockSums::ClockSums(const TableParams &params, bool of_function)
    : added_(params), dtype_(params.dtype) {
    if (!of_function) added_.dtype = dtype_of(params);
    size_ = device::dtype_size(added_.dtype);
}

const char *ClockSums::of(const void *g, uint64_t count, double weight) {
    const bool wide = added_.dtype != dtype_;
    if (!wide && weight == 1) return static_cast<const char *>(g);
    if (taken_.size() < count * size_) taken_.resize(count * size_);
    char *to = taken_.data();
    if (!wide)
        device::multiply(to, g, count, dtype_, weight);
    else if (is_float(dtype_))
        device::widen(reinterpret_cast<float *>(to), g, count, dtype_);
    else
        visit_integer(dtype_, [&]<class T, class S>() { convert<S, T>(to, g, count); });
    if (wide && weight != 1) device::multiply(to, to, count, added_.dtype, weight);
    return to;
}

void ClockSums::add(void *to, const void *from, uint64_t count) const {
    combine(added_, to, from, count);
}

void ClockSums::finish(void *sum, uint64_t count, double divisor) const {
    if (added_.aggregate != DTRAIN_AVG) return;
    divide(sum, count, added_.dtype, divisor);
    if (added_.dtype == dtype_) return;
    if (is_float(dtype_))
        device::narrow(sum, static_cast<const float *>(sum), count, dtype_);
    else
        visit_integer(dtype_, [&]<class T, class S>() { convert<T, S>(sum, sum, count); });
}

} // namespace dtrain::ps
