// The kernels of SGD, its variants with momentum, and the running mean.
// SPDX-License-Identifier: Apache-2.0
#include "ps/kernels/kernels.h"

#include "ps/kernels/kernel_loop.h"

namespace dtrain::ps {
namespace {

DTRAIN_LOOP(sgd) {
    const T rate = static_cast<T>(s.rate * s.ratio);
    for (uint64_t i = 0; i < count; ++i) w[i] -= rate * g[i];
}

DTRAIN_LOOP(momentum) {
    const T rate = static_cast<T>(s.rate), mu = static_cast<T>(s.momentum);
    for (uint64_t i = 0; i < count; ++i) {
        a[i] = mu * a[i] + g[i];
        w[i] -= rate * a[i];
    }
}

DTRAIN_LOOP(nesterov) {
    const T rate = static_cast<T>(s.rate), mu = static_cast<T>(s.momentum);
    for (uint64_t i = 0; i < count; ++i) {
        a[i] = mu * a[i] + g[i];
        w[i] -= rate * (g[i] + mu * a[i]);
    }
}

DTRAIN_LOOP(lars) {
    const T rate = static_cast<T>(s.rate * s.ratio), mu = static_cast<T>(s.momentum),
            decay = static_cast<T>(s.own_decay);
    for (uint64_t i = 0; i < count; ++i) {
        a[i] = mu * a[i] + rate * (g[i] + decay * w[i]);
        w[i] -= a[i];
    }
}

DTRAIN_LOOP(dc_sgd) {
    const T rate = static_cast<T>(s.rate), lambda = static_cast<T>(s.compensation);
    for (uint64_t i = 0; i < count; ++i)
        w[i] -= rate * (g[i] + lambda * g[i] * g[i] * (w[i] - a[i]));
}

DTRAIN_LOOP(mean) {
    const T share = static_cast<T>(s.share);
    for (uint64_t i = 0; i < count; ++i) w[i] += share * (g[i] - w[i]);
}

} // namespace

DTRAIN_KERNEL(sgd)
DTRAIN_KERNEL(momentum)
DTRAIN_KERNEL(nesterov)
DTRAIN_KERNEL(lars)
DTRAIN_KERNEL(dc_sgd)
DTRAIN_KERNEL(mean)

} // namespace dtrain::ps
