// The loop of LARS.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/rules/loops/loop.h"

namespace dtrain::ps {
namespace {

// A row whose norm is 0 moves at the plain rate, so that rows of zeros can change.
DTRAIN_INLINE double lars_ratio(const Step &s, const Norms &norms, uint64_t, double &) {
    if (norms.values == 0 || norms.direction == 0) return 1;
    double values = root(norms.values);
    return s.trust * values / (root(norms.direction) + s.own_decay * values);
}

DTRAIN_LOOP(lars) {
    const T rate = static_cast<T>(s.rate * s.ratio), mu = static_cast<T>(s.momentum),
            decay = static_cast<T>(s.own_decay);
    for (uint64_t i = 0; i < count; ++i) {
        a[i] = mu * a[i] + rate * (g[i] + decay * w[i]);
        w[i] -= a[i];
    }
}

} // namespace
} // namespace dtrain::ps
