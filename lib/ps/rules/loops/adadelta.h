// The loop of Adadelta.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/rules/loops/loop.h"

namespace dtrain::ps {
namespace {

DTRAIN_LOOP(adadelta) {
    const T rate = static_cast<T>(s.rate), epsilon = static_cast<T>(s.epsilon),
            rho = static_cast<T>(s.rho), rest = static_cast<T>(1 - s.rho);
    for (uint64_t i = 0; i < count; ++i) {
        a[i] = rho * a[i] + rest * g[i] * g[i];
        const T delta = root(b[i] + epsilon) / root(a[i] + epsilon) * g[i];
        b[i] = rho * b[i] + rest * delta * delta;
        w[i] -= rate * delta;
    }
}

} // namespace
} // namespace dtrain::ps
