// The loop of RMSProp.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/rules/loops/loop.h"

namespace dtrain::ps {
namespace {

DTRAIN_LOOP(rmsprop) {
    const T rate = static_cast<T>(s.rate), epsilon = static_cast<T>(s.epsilon),
            rho = static_cast<T>(s.rho), rest = static_cast<T>(1 - s.rho);
    for (uint64_t i = 0; i < count; ++i) {
        a[i] = rho * a[i] + rest * g[i] * g[i];
        w[i] -= rate * g[i] / (root(a[i]) + epsilon);
    }
}

} // namespace
} // namespace dtrain::ps
