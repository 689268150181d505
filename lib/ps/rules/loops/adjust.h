// What runs before and after a rule: clipping, weight decay, the proximal step.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/rules/loops/loop.h"

namespace dtrain::ps {
namespace {

DTRAIN_LOOP(adjust) {
    const T scale = static_cast<T>(s.scale), decay = static_cast<T>(s.decay);
    const T most = s.clip > 0 ? static_cast<T>(s.clip) : infinity<T>();
    for (uint64_t i = 0; i < count; ++i) {
        const T above = g[i] > most ? most : g[i]; // NaN stays NaN
        const T limited = above < -most ? -most : above;
        a[i] = scale * limited + decay * w[i];
    }
}

DTRAIN_LOOP(proximal) {
    const T threshold = static_cast<T>(s.rate * s.l1);
    const T shrink = static_cast<T>(1 / (1 + s.rate * s.l2));
    for (uint64_t i = 0; i < count; ++i) {
        const T lower = w[i] - threshold, upper = w[i] + threshold;
        // w - w is 0, or NaN if w is NaN.
        w[i] = shrink * (lower > 0 ? lower : (upper < 0 ? upper : w[i] - w[i]));
    }
}

} // namespace
} // namespace dtrain::ps
