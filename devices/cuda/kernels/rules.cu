// The kernels of update rules, of one dtype: DT_NAME, of the type DT_TYPE, the class DT_FORMAT.
// SPDX-License-Identifier: Apache-2.0
//
// The loops are those of processors (lib/ps/rules/loops), each called for one element. Norms are
// summed in the order of lib/device: eight partial sums for a block, then block after block.
#include "arguments.h"
#include "ops.h"

#include "ps/rules/loops/adadelta.h"
#include "ps/rules/loops/adagrad.h"
#include "ps/rules/loops/adagrad_rows.h"
#include "ps/rules/loops/adam.h"
#include "ps/rules/loops/adamw.h"
#include "ps/rules/loops/adjust.h"
#include "ps/rules/loops/amsgrad.h"
#include "ps/rules/loops/ftrl.h"
#include "ps/rules/loops/lamb.h"
#include "ps/rules/loops/lars.h"
#include "ps/rules/loops/mean.h"
#include "ps/rules/loops/momentum.h"
#include "ps/rules/loops/nesterov.h"
#include "ps/rules/loops/rmsprop.h"
#include "ps/rules/loops/sgd.h"

#define DT_JOIN(name, what)       DT_JOIN_THESE(name, what)
#define DT_JOIN_THESE(name, what) dtrain_rules_##name##_##what
#define DT_RULE_KERNEL(what)      DT_NAMED(DT_JOIN(DT_NAME, what))
#define DT_NAMED(name)            DT_KERNEL(name, UpdateArguments)

namespace dtrain::cuda {

using ps::Norms;
using ps::Step;
using T = DT_TYPE;

// A loop as a type, so that a kernel can be made for each.
#define DT_LOOP_TYPE(name)                                                                         \
    struct name##_type {                                                                           \
        DT_FN void run(const Step &s, T *w, const T *g, T *a, T *b, T *c) {                        \
            ps::name##_loop<T>(s, w, g, a, b, c, 1);                                               \
        }                                                                                          \
    };

DT_FN Step step_of(const UpdateArguments &a) {
    const UpdateNumbers &n = a.numbers;
    Step s;
    s.rate = n.rate;
    s.momentum = n.momentum;
    s.beta1 = n.beta1;
    s.beta2 = n.beta2;
    s.rho = n.rho;
    s.epsilon = n.epsilon;
    s.decay = n.decay;
    s.own_decay = n.own_decay;
    s.l1 = n.l1;
    s.l2 = n.l2;
    s.clip = n.clip;
    s.ftrl_beta = n.ftrl_beta;
    s.trust = n.trust;
    s.first = n.first;
    s.second = n.second;
    s.share = n.share;
    return s;
}

DT_FN T *from(void *array, uint64_t i) { return array != nullptr ? &at<T>(array, i) : nullptr; }

// The gradient as the rule gets it.
DT_FN T adjusted(const UpdateArguments &a, const Step &s, T *w, uint64_t place) {
    const T g = at<const T>(a.gradients, place);
    if ((a.flags & update_adjusts) == 0) return g;
    T used;
    ps::adjust_loop<T>(s, w, &g, &used, nullptr, nullptr, 1);
    return used;
}

template <class Loop>
DT_FN void apply_to(const UpdateArguments &a, const Step &s, uint64_t place, uint64_t i) {
    T *const w = &at<T>(a.values, place);
    const T used = adjusted(a, s, w, place);
    Loop::run(s, w, &used, from(a.slots[0], i), from(a.slots[1], i), from(a.slots[2], i));
    if ((a.flags & update_proximal) != 0)
        ps::proximal_loop<T>(s, w, &used, nullptr, nullptr, nullptr, 1);
}
template <class Loop> DT_FN void apply(const UpdateArguments &a) {
    Step s = step_of(a);
    if (a.stride == a.columns && (a.flags & update_by_row) == 0) { // rows do not matter
        DT_ROLL
        for (uint64_t i = DT_FIRST; i < a.count; i += DT_STEP) apply_to<Loop>(a, s, i, i);
        return;
    }
    DT_ROLL
    for (uint64_t i = DT_FIRST; i < a.count; i += DT_STEP) {
        const uint64_t row = i / a.columns, place = row * a.stride + (i - row * a.columns);
        if ((a.flags & update_by_row) != 0) {
            s.scale = at<const double>(a.factors, 2 * row);
            s.ratio = at<const double>(a.factors, 2 * row + 1);
        }
        apply_to<Loop>(a, s, place, i);
    }
}

// Eight partial sums, of which a block's total is made as in lib/device.
struct Partial {
    double sums[8];
    DT_MEMBER double total() const {
        return ((sums[0] + sums[4]) + (sums[2] + sums[6])) +
               ((sums[1] + sums[5]) + (sums[3] + sums[7]));
    }
};

// Calls sum(place, i, k) for each element of a block, k of them summed apart, and stores the sums.
template <class Element> DT_FN void for_each_block(const UpdateArguments &a, Element &&element) {
    const uint64_t blocks = (a.columns + norm_block - 1) / norm_block;
    const uint64_t rows = a.count / a.columns;
    DT_ROLL
    for (uint64_t b = DT_FIRST; b < rows * blocks; b += DT_STEP) {
        const uint64_t row = b / blocks, first = (b - row * blocks) * norm_block;
        const uint64_t n = a.columns - first < norm_block ? a.columns - first : norm_block;
        Partial values{}, direction{}, finite{};
        DT_ROLL
        for (uint64_t at_k = 0; at_k < n; at_k += 8) {
            DT_UNROLL
            for (uint32_t k = 0; k < 8; k++) {
                if (at_k + k >= n) break;
                const uint64_t column = first + at_k + k;
                double w = 0, along = 0;
                element(row, row * a.stride + column, row * a.columns + column, w, along);
                values.sums[k] += w * w;
                direction.sums[k] += along * along;
                const bool is_finite = along - along == 0;
                finite.sums[k] += is_finite ? along * along : 0;
            }
        }
        at<double>(a.blocks, 3 * b) = values.total();
        at<double>(a.blocks, 3 * b + 1) = direction.total();
        at<double>(a.blocks, 3 * b + 2) = finite.total();
    }
}

// The sums of a row's blocks, in order.
DT_FN Norms norms_of(const UpdateArguments &a, uint64_t row, double &finite) {
    const uint64_t blocks = (a.columns + norm_block - 1) / norm_block;
    Norms norms;
    finite = 0;
    DT_ROLL
    for (uint64_t b = row * blocks; b < (row + 1) * blocks; b++) {
        norms.values += at<const double>(a.blocks, 3 * b);
        norms.direction += at<const double>(a.blocks, 3 * b + 1);
        finite += at<const double>(a.blocks, 3 * b + 2);
    }
    return norms;
}

DT_RULE_KERNEL(clip_norms) {
    Step s = step_of(a);
    s.decay = 0;
    for_each_block(a, [&](uint64_t, uint64_t place, uint64_t, double &w, double &along) {
        T *const value = &at<T>(a.values, place);
        w = *value;
        along = adjusted(a, s, value, place);
    });
}

DT_RULE_KERNEL(clip_scale) {
    DT_ROLL
    for (uint64_t row = DT_FIRST; row < a.count / a.columns; row += DT_STEP) {
        double finite = 0;
        const Norms norms = norms_of(a, row, finite);
        double norm = ps::root(norms.direction);
        if (!(norm - norm == 0)) norm = ps::root(finite);
        at<double>(a.factors, 2 * row) =
            norm > a.numbers.clip_norm ? a.numbers.clip_norm / norm : 1;
        at<double>(a.factors, 2 * row + 1) = 1;
    }
}

struct GradientDirection {
    DT_FN T of(const UpdateArguments &, const Step &, T *, T used, uint64_t) { return used; }
};
struct LambDirection {
    DT_FN T of(const UpdateArguments &a, const Step &s, T *w, T used, uint64_t i) {
        T along;
        ps::lamb_direction_loop<T>(s, w, &used, from(a.slots[0], i), from(a.slots[1], i), &along,
                                   1);
        return along;
    }
};
template <class Direction> DT_FN void direction_norms(const UpdateArguments &a) {
    Step s = step_of(a);
    const bool clipped = (a.flags & update_clipped) != 0;
    for_each_block(a, [&](uint64_t row, uint64_t place, uint64_t i, double &w, double &along) {
        T *const value = &at<T>(a.values, place);
        w = *value;
        if (clipped) s.scale = at<const double>(a.factors, 2 * row);
        along = Direction::of(a, s, value, adjusted(a, s, value, place), i);
    });
}
DT_RULE_KERNEL(norms) { direction_norms<GradientDirection>(a); }
DT_RULE_KERNEL(lamb_norms) { direction_norms<LambDirection>(a); }

template <class Ratio> DT_FN void ratios(const UpdateArguments &a, Ratio &&ratio, bool keeps) {
    const Step s = step_of(a);
    const bool clipped = (a.flags & update_clipped) != 0;
    DT_ROLL
    for (uint64_t row = DT_FIRST; row < a.count / a.columns; row += DT_STEP) {
        double finite = 0;
        const Norms norms = norms_of(a, row, finite);
        double state = keeps ? double(at<const T>(a.slots[0], row)) : 0;
        if (!clipped) at<double>(a.factors, 2 * row) = 1;
        at<double>(a.factors, 2 * row + 1) = ratio(s, norms, a.columns, state);
        if (keeps) at<T>(a.slots[0], row) = static_cast<T>(state);
    }
}
#define DT_RATIO(name, keeps)                                                                      \
    DT_RULE_KERNEL(name##_ratio) {                                                                 \
        ratios(                                                                                    \
            a,                                                                                     \
            [](const Step &s, const Norms &norms, uint64_t count, double &state) {                 \
                return ps::name##_ratio(s, norms, count, state);                                   \
            },                                                                                     \
            keeps);                                                                                \
    }
DT_RATIO(lars, false)
DT_RATIO(lamb, false)
DT_RATIO(adagrad_rows, true)

#define DT_RULE(name)                                                                              \
    DT_LOOP_TYPE(name)                                                                             \
    DT_RULE_KERNEL(name) { apply<name##_type>(a); }
DT_RULE(sgd)
DT_RULE(momentum)
DT_RULE(nesterov)
DT_RULE(adagrad)
DT_RULE(rmsprop)
DT_RULE(adadelta)
DT_RULE(adam)
DT_RULE(adamw)
DT_RULE(amsgrad)
DT_RULE(ftrl)
DT_RULE(lars)
DT_RULE(lamb)
DT_RULE(mean)

// Rules that only combine, for the columns of segments.
#define DT_COMBINATION(name, Op)                                                                   \
    struct name##_type {                                                                           \
        DT_FN void run(const Step &, T *w, const T *g, T *, T *, T *) {                            \
            *w = Op<DT_FORMAT>::last(Op<DT_FORMAT>::add(Op<DT_FORMAT>::first(*w), *g), 2);         \
        }                                                                                          \
    };                                                                                             \
    DT_RULE_KERNEL(name) { apply<name##_type>(a); }
DT_COMBINATION(add, Sum)
DT_COMBINATION(min, Min)
DT_COMBINATION(max, Max)

struct assign_type {
    DT_FN void run(const Step &, T *w, const T *g, T *, T *, T *) { *w = *g; }
};
DT_RULE_KERNEL(assign) { apply<assign_type>(a); }

// Its state is of rows, and is in the ratio.
DT_RULE_KERNEL(adagrad_rows) {
    UpdateArguments own = a;
    own.slots[0] = nullptr;
    apply<sgd_type>(own);
}

} // namespace dtrain::cuda
