// The loop of momentum.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/rules/loops/loop.h"

namespace dtrain::ps {
namespace {

DTRAIN_LOOP(momentum) {
    const T rate = static_cast<T>(s.rate), mu = static_cast<T>(s.momentum);
    for (uint64_t i = 0; i < count; ++i) {
        a[i] = mu * a[i] + g[i];
        w[i] -= rate * a[i];
    }
}

} // namespace
} // namespace dtrain::ps
