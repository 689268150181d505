// The kernels of Adam and its variants, with two moments: a (first) and b (second).
// SPDX-License-Identifier: Apache-2.0
#include "ps/kernels/kernels.h"

#include "ps/kernels/kernel_loop.h"

namespace dtrain::ps {
namespace {

// The constants that all variants use.
template <class T> struct Adam {
    DTRAIN_INLINE explicit Adam(const Step &s)
        : beta1(static_cast<T>(s.beta1)), beta2(static_cast<T>(s.beta2)),
          rest1(static_cast<T>(1 - s.beta1)), rest2(static_cast<T>(1 - s.beta2)),
          rate(static_cast<T>(s.rate * s.first)), first(static_cast<T>(s.first)),
          second(static_cast<T>(s.second)), epsilon(static_cast<T>(s.epsilon)) {}
    T beta1, beta2, rest1, rest2, rate, first, second, epsilon;
};

DTRAIN_LOOP(adam) {
    const Adam<T> k(s);
    for (uint64_t i = 0; i < count; ++i) {
        a[i] = k.beta1 * a[i] + k.rest1 * g[i];
        b[i] = k.beta2 * b[i] + k.rest2 * g[i] * g[i];
        w[i] -= k.rate * a[i] / (root(b[i] * k.second) + k.epsilon);
    }
}

DTRAIN_LOOP(adamw) {
    const Adam<T> k(s);
    const T shrink = static_cast<T>(s.rate * s.own_decay);
    for (uint64_t i = 0; i < count; ++i) {
        a[i] = k.beta1 * a[i] + k.rest1 * g[i];
        b[i] = k.beta2 * b[i] + k.rest2 * g[i] * g[i];
        w[i] -= shrink * w[i] + k.rate * a[i] / (root(b[i] * k.second) + k.epsilon);
    }
}

DTRAIN_LOOP(amsgrad) { // c: the maximum of the second moment
    const Adam<T> k(s);
    for (uint64_t i = 0; i < count; ++i) {
        a[i] = k.beta1 * a[i] + k.rest1 * g[i];
        b[i] = k.beta2 * b[i] + k.rest2 * g[i] * g[i];
        c[i] = b[i] < c[i] ? c[i] : b[i];
        w[i] -= k.rate * a[i] / (root(c[i] * k.second) + k.epsilon);
    }
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

DTRAIN_KERNEL(adam)
DTRAIN_KERNEL(adamw)
DTRAIN_KERNEL(amsgrad)
DTRAIN_KERNEL(lamb_direction)
DTRAIN_KERNEL(lamb)

} // namespace dtrain::ps
