// The loop of the running mean.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/rules/loops/loop.h"

namespace dtrain::ps {
namespace {

DTRAIN_LOOP(mean) {
    const T share = static_cast<T>(s.share);
    for (uint64_t i = 0; i < count; ++i) w[i] += share * (g[i] - w[i]);
}

} // namespace
} // namespace dtrain::ps
