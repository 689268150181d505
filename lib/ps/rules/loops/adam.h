// The loop of Adam.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/rules/loops/adam_numbers.h"

namespace dtrain::ps {
namespace {

DTRAIN_LOOP(adam) {
    const Adam<T> k(s);
    for (uint64_t i = 0; i < count; ++i) {
        a[i] = k.beta1 * a[i] + k.rest1 * g[i];
        b[i] = k.beta2 * b[i] + k.rest2 * g[i] * g[i];
        w[i] -= k.rate * a[i] / (root(b[i] * k.second) + k.epsilon);
    }
}

} // namespace
} // namespace dtrain::ps
