// The loop of SGD.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/rules/loops/loop.h"

namespace dtrain::ps {
namespace {

DTRAIN_LOOP(sgd) {
    const T rate = static_cast<T>(s.rate * s.ratio);
    for (uint64_t i = 0; i < count; ++i) w[i] -= rate * g[i];
}

} // namespace
} // namespace dtrain::ps
