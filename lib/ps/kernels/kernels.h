// The inner loops of the update rules, compiled for several instruction sets, one of which is
// chosen at run time. The formulas are in docs/PARAMETER_SERVER.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace dtrain::ps {

// The numbers of one update, which are the same for all its elements.
struct Step {
    double rate = 0, momentum = 0, beta1 = 0, beta2 = 0, rho = 0, epsilon = 0;
    double decay = 0, own_decay = 0; // weight decay: added to g; applied by the rule
    double l1 = 0, l2 = 0, clip = 0;
    double ftrl_beta = 0, compensation = 0, trust = 0;
    double first = 1, second = 1; // corrections of Adam's moments: 1 / (1 - beta^t)
    double share = 1;             // MEAN: 1 / t
    double scale = 1;             // factor for g that clips its norm
    double ratio = 1;             // factor for the rate, computed from norms
};

inline constexpr uint32_t max_slots = 3; // a, b and c

// Updates w by g with the rule's state a, b, c (slots that the rule lacks are not read). No two
// arrays may overlap; no alignment beyond the element's is needed.
template <class T>
using Kernel = void (*)(const Step &step, T *w, const T *g, T *a, T *b, T *c, uint64_t count);

// The kernels of one rule, or of a step that several rules share.
struct Kernels {
    Kernel<float> f32 = nullptr;
    Kernel<double> f64 = nullptr;
    template <class T> Kernel<T> of() const {
        if constexpr (sizeof(T) == 4)
            return f32;
        else
            return f64;
    }
};

// dc_sgd: a has the values that the worker pulled. lamb_direction is the first half of LAMB: it
// computes the new moments, and in c the direction whose norm is needed. adjust runs before a rule
// and computes a = scale * clipped g + decay * w. proximal runs after it: the proximal step on w.
#define DTRAIN_EACH_KERNEL(f)                                                                      \
    f(sgd) f(momentum) f(nesterov) f(lars) f(dc_sgd) f(mean) f(adagrad) f(rmsprop) f(adadelta)     \
        f(ftrl) f(adam) f(adamw) f(amsgrad) f(lamb) f(lamb_direction) f(adjust) f(proximal)

// All kernels for one instruction set. Every set computes the same results, bit for bit.
struct KernelTable {
    const char *target;
#define DTRAIN_KERNEL_FIELD(name) Kernels name;
    DTRAIN_EACH_KERNEL(DTRAIN_KERNEL_FIELD)
#undef DTRAIN_KERNEL_FIELD
};

// The rank-th best table this processor can run (0 = the best), nullptr beyond the last one.
const KernelTable *supported_kernels(uint32_t rank);

} // namespace dtrain::ps
