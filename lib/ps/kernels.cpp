// SPDX-License-Identifier: Apache-2.0
#include "ps/kernels.h"

#include <cmath>
#include <type_traits>

// The loops are written to be vectorised, which the default level of gcc 12 does not do. Those with
// a root need -fno-math-errno besides, which no pragma can give.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math")
#endif

// One copy per instruction set. Sanitizers instrument the resolver, which runs before they do.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__) ||         \
    !defined(__x86_64__)
#define DTRAIN_CLONES
#else
#define DTRAIN_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#define DTRAIN_INLINE [[gnu::always_inline]] inline

namespace dtrain::ps {
namespace {

template <class T> DTRAIN_INLINE T root(T value) {
    if constexpr (sizeof(T) == 4)
        return __builtin_sqrtf(value);
    else
        return __builtin_sqrt(value);
}

template <class T>
DTRAIN_INLINE void sgd(const Step &s, T *__restrict w, const T *__restrict g, uint64_t count) {
    const T rate = static_cast<T>(s.rate);
    for (uint64_t i = 0; i < count; ++i) w[i] -= rate * g[i];
}

template <class T>
DTRAIN_INLINE void momentum(const Step &s, T *__restrict w, const T *__restrict g, T *__restrict v,
                            uint64_t count) {
    const T rate = static_cast<T>(s.rate), mu = static_cast<T>(s.momentum);
    for (uint64_t i = 0; i < count; ++i) {
        v[i] = mu * v[i] + g[i];
        w[i] -= rate * v[i];
    }
}

template <class T>
DTRAIN_INLINE void adagrad(const Step &s, T *__restrict w, const T *__restrict g, T *__restrict sum,
                           uint64_t count) {
    const T rate = static_cast<T>(s.rate), epsilon = static_cast<T>(s.epsilon);
    for (uint64_t i = 0; i < count; ++i) {
        sum[i] += g[i] * g[i];
        w[i] -= rate * g[i] / (root(sum[i]) + epsilon);
    }
}

template <class T>
DTRAIN_INLINE void adam(const Step &s, T *__restrict w, const T *__restrict g, T *__restrict m,
                        T *__restrict v, uint64_t count) {
    const T rate = static_cast<T>(s.rate), second = static_cast<T>(s.second),
            epsilon = static_cast<T>(s.epsilon), beta1 = static_cast<T>(s.beta1),
            beta2 = static_cast<T>(s.beta2), rest1 = static_cast<T>(1 - s.beta1),
            rest2 = static_cast<T>(1 - s.beta2);
    for (uint64_t i = 0; i < count; ++i) {
        m[i] = beta1 * m[i] + rest1 * g[i];
        v[i] = beta2 * v[i] + rest2 * g[i] * g[i];
        w[i] -= rate * m[i] / (root(v[i] * second) + epsilon);
    }
}

template <class T>
DTRAIN_INLINE void run(const Step &s, T *w, const T *g, T *a, T *b, uint64_t count) {
    switch (s.rule) {
    case DTRAIN_RULE_SGD: return sgd(s, w, g, count);
    case DTRAIN_RULE_MOMENTUM: return momentum(s, w, g, a, count);
    case DTRAIN_RULE_ADAGRAD: return adagrad(s, w, g, a, count);
    case DTRAIN_RULE_ADAM: return adam(s, w, g, a, b, count);
    default: return;
    }
}

} // namespace

Step make_step(const TableParams &p, uint64_t number) {
    Step s = {p.rule, p.learning_rate, p.momentum, p.beta1, p.beta2, 1, p.epsilon};
    if (p.rule == DTRAIN_RULE_ADAM) {
        auto n = static_cast<double>(number);
        s.rate /= 1 - std::pow(p.beta1, n);
        s.second = 1 / (1 - std::pow(p.beta2, n));
    }
    return s;
}

DTRAIN_CLONES void kernel_step(const Step &step, float *w, const float *g, float *a, float *b,
                               uint64_t count) {
    run(step, w, g, a, b, count);
}

DTRAIN_CLONES void kernel_step(const Step &step, double *w, const double *g, double *a, double *b,
                               uint64_t count) {
    run(step, w, g, a, b, count);
}

} // namespace dtrain::ps
