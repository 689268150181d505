// The loop of Adagrad.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/rules/loops/loop.h"

namespace dtrain::ps {
namespace {

DTRAIN_LOOP(adagrad) {
    const T rate = static_cast<T>(s.rate), epsilon = static_cast<T>(s.epsilon);
    for (uint64_t i = 0; i < count; ++i) {
        a[i] += g[i] * g[i];
        w[i] -= rate * g[i] / (root(a[i]) + epsilon);
    }
}

} // namespace
} // namespace dtrain::ps
