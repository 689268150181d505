// The loop of FTRL-proximal.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/rules/loops/loop.h"

namespace dtrain::ps {
namespace {

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
} // namespace dtrain::ps
