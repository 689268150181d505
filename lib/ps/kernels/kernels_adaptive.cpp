// The kernels of rules that adapt the rate of each element to its past gradients.
// SPDX-License-Identifier: Apache-2.0
#include "ps/kernels/kernels.h"

#include "ps/kernels/kernel_loop.h"

namespace dtrain::ps {
namespace {

DTRAIN_LOOP(adagrad) {
    const T rate = static_cast<T>(s.rate), epsilon = static_cast<T>(s.epsilon);
    for (uint64_t i = 0; i < count; ++i) {
        a[i] += g[i] * g[i];
        w[i] -= rate * g[i] / (root(a[i]) + epsilon);
    }
}

DTRAIN_LOOP(rmsprop) {
    const T rate = static_cast<T>(s.rate), epsilon = static_cast<T>(s.epsilon),
            rho = static_cast<T>(s.rho), rest = static_cast<T>(1 - s.rho);
    for (uint64_t i = 0; i < count; ++i) {
        a[i] = rho * a[i] + rest * g[i] * g[i];
        w[i] -= rate * g[i] / (root(a[i]) + epsilon);
    }
}

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

DTRAIN_LOOP(ftrl) { // a: z, b: n; a NaN stays NaN
    const T inverse = static_cast<T>(1 / s.rate), l1 = static_cast<T>(s.l1),
            fixed = static_cast<T>(s.ftrl_beta / s.rate + s.l2);
    for (uint64_t i = 0; i < count; ++i) {
        const T before = root(b[i]);
        b[i] += g[i] * g[i];
        const T after = root(b[i]);
        a[i] += g[i] - (after - before) * inverse * w[i];
        const T beyond = a[i] > l1 ? a[i] - l1 : (a[i] < -l1 ? a[i] + l1 : a[i] - a[i]);
        w[i] = -beyond / (after * inverse + fixed);
    }
}

} // namespace

DTRAIN_KERNEL(adagrad)
DTRAIN_KERNEL(rmsprop)
DTRAIN_KERNEL(adadelta)
DTRAIN_KERNEL(ftrl)

} // namespace dtrain::ps
