// The loop of AMSGrad.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/rules/loops/adam_numbers.h"

namespace dtrain::ps {
namespace {

DTRAIN_LOOP(amsgrad) { // c: the maximum of the second moment
    const Adam<T> k(s);
    for (uint64_t i = 0; i < count; ++i) {
        a[i] = k.beta1 * a[i] + k.rest1 * g[i];
        b[i] = k.beta2 * b[i] + k.rest2 * g[i] * g[i];
        c[i] = b[i] < c[i] ? c[i] : b[i];
        w[i] -= k.rate * a[i] / (root(c[i] * k.second) + k.epsilon);
    }
}

} // namespace
} // namespace dtrain::ps
