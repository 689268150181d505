// The loop of LAMB.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/rules/loops/adam_numbers.h"

namespace dtrain::ps {
namespace {

DTRAIN_INLINE double lamb_ratio(const Step &, const Norms &norms, uint64_t, double &) {
    if (norms.values == 0 || norms.direction == 0) return 1;
    return root(norms.values / norms.direction);
}

DTRAIN_LOOP(lamb_direction) {
    const Adam<T> k(s);
    const T decay = static_cast<T>(s.own_decay);
    for (uint64_t i = 0; i < count; ++i) {
        a[i] = k.beta1 * a[i] + k.rest1 * g[i];
        b[i] = k.beta2 * b[i] + k.rest2 * g[i] * g[i];
        c[i] = k.first * a[i] / (root(b[i] * k.second) + k.epsilon) + decay * w[i];
    }
}

DTRAIN_LOOP(lamb) { // computes the direction again, which is cheaper than storing it
    const Adam<T> k(s);
    const T decay = static_cast<T>(s.own_decay), rate = static_cast<T>(s.rate * s.ratio);
    for (uint64_t i = 0; i < count; ++i)
        w[i] -= rate * (k.first * a[i] / (root(b[i] * k.second) + k.epsilon) + decay * w[i]);
}

} // namespace
} // namespace dtrain::ps
