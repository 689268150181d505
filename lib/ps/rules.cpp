// SPDX-License-Identifier: Apache-2.0
#include "ps/rules.h"

#include "device/kernels.h"
#include "ps/dtype.h"
#include "ps/kernels.h"

#include <algorithm>
#include <cstring>

namespace dtrain::ps {
namespace {

constexpr uint64_t block = 512; // elements of a 16-bit type that are converted at a time

template <class T>
constexpr bool is_16_bit_float = std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>;

void narrow(const float *from, Half *to, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) to[i] = to_half(from[i]);
}

void narrow(const float *from, Bfloat *to, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) to[i] = to_bfloat(from[i]);
}

template <class T> void widen(const T *from, float *to, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) to[i] = to_float(from[i]);
}

// f(values, g, offset, count) on floats, in place of 16-bit values.
template <class T, class F> void in_float(T *values, const T *g, uint64_t count, F &&f) {
    float wide_values[block], wide_g[block];
    for (uint64_t i = 0; i < count; i += block) {
        uint64_t n = std::min(block, count - i);
        widen(values + i, wide_values, n);
        if (g != nullptr) widen(g + i, wide_g, n);
        f(wide_values, wide_g, i, n);
        narrow(wide_values, values + i, n);
    }
}

template <class T>
void optimize(const Step &step, const RuleTarget &target, const T *g, uint64_t count) {
    auto *values = static_cast<T *>(target.values);
    if constexpr (is_16_bit_float<T>) {
        auto *a = static_cast<float *>(target.slots[0]), *b = static_cast<float *>(target.slots[1]);
        in_float(values, g, count, [&](float *w, const float *wide_g, uint64_t at, uint64_t n) {
            kernel_step(step, w, wide_g, a != nullptr ? a + at : nullptr,
                        b != nullptr ? b + at : nullptr, n);
        });
    } else if constexpr (std::is_floating_point_v<T>) {
        kernel_step(step, values, g, static_cast<T *>(target.slots[0]),
                    static_cast<T *>(target.slots[1]), count);
    }
}

} // namespace

uint32_t rule_slots(uint32_t rule) {
    switch (rule) {
    case DTRAIN_RULE_MOMENTUM:
    case DTRAIN_RULE_ADAGRAD: return 1;
    case DTRAIN_RULE_ADAM: return 2;
    default: return 0;
    }
}

uint32_t slot_size(uint32_t dtype) { return dtype == DTRAIN_F64 ? 8 : 4; }

bool rule_counts_steps(uint32_t rule) { return rule == DTRAIN_RULE_ADAM; }

void apply_rule(const TableParams &params, uint64_t step_number, const RuleTarget &target,
                const void *g, uint64_t count) {
    if (params.rule == DTRAIN_RULE_ADD)
        return device::reduce(target.values, g, count, params.dtype, DTRAIN_SUM);
    if (params.rule == DTRAIN_RULE_ASSIGN) {
        std::memcpy(target.values, g, count * device::dtype_size(params.dtype));
        return;
    }
    Step step = make_step(params, step_number);
    visit_dtype(params.dtype,
                [&]<class T>() { optimize(step, target, static_cast<const T *>(g), count); });
}

void fill(uint32_t dtype, void *values, uint64_t count, double value) {
    visit_dtype(dtype, [&]<class T>() {
        std::fill_n(static_cast<T *>(values), count, converted<T>(value));
    });
}

} // namespace dtrain::ps
