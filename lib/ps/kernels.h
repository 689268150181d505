// The inner loops of the update rules, compiled for several instruction sets and chosen at run
// time. Formulas in docs/PARAMETER_SERVER.md. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace dtrain::ps {

// The numbers of one update: what is the same for all its elements.
struct Step {
    double rate = 0, momentum = 0, beta1 = 0, beta2 = 0, rho = 0, epsilon = 0;
    double decay = 0, own_decay = 0; // of weights: added to g, or in the rule
    double l1 = 0, l2 = 0, clip = 0;
    double ftrl_beta = 0, compensation = 0, trust = 0;
    double first = 1, second = 1; // corrections of Adam's moments: 1 / (1 - beta^t)
    double share = 1;             // MEAN: 1 / t
    double scale = 1;             // of g, by its norm
    double ratio = 1;             // of the rate, by norms
};

inline constexpr uint32_t max_slots = 3; // a, b and c

// One update of w by g with the rule's state a, b, c (as many as it has; the others are not read).
// No two arrays overlap; no alignment beyond the element's.
template <class T>
using Kernel = void (*)(const Step &step, T *w, const T *g, T *a, T *b, T *c, uint64_t count);

#define DTRAIN_KERNEL_OF(name, type)                                                               \
    void name(const Step &step, type *w, const type *g, type *a, type *b, type *c, uint64_t count)
#define DTRAIN_DECLARE_KERNEL(name)                                                                \
    DTRAIN_KERNEL_OF(name, float);                                                                 \
    DTRAIN_KERNEL_OF(name, double)

DTRAIN_DECLARE_KERNEL(sgd);
DTRAIN_DECLARE_KERNEL(momentum);
DTRAIN_DECLARE_KERNEL(nesterov);
DTRAIN_DECLARE_KERNEL(lars);
DTRAIN_DECLARE_KERNEL(dc_sgd); // a: what the worker pulled
DTRAIN_DECLARE_KERNEL(mean);
DTRAIN_DECLARE_KERNEL(adagrad);
DTRAIN_DECLARE_KERNEL(rmsprop);
DTRAIN_DECLARE_KERNEL(adadelta);
DTRAIN_DECLARE_KERNEL(ftrl);
DTRAIN_DECLARE_KERNEL(adam);
DTRAIN_DECLARE_KERNEL(adamw);
DTRAIN_DECLARE_KERNEL(amsgrad);
DTRAIN_DECLARE_KERNEL(lamb);
// The first half of LAMB: new moments, and in c the direction of which the norm is taken.
DTRAIN_DECLARE_KERNEL(lamb_direction);

// Before the rule, a = scale * clipped g + decay * w; after it, the proximal step on w.
DTRAIN_DECLARE_KERNEL(adjust);
DTRAIN_DECLARE_KERNEL(proximal);

} // namespace dtrain::ps
