// The factor of Adagrad with one sum for each row.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/rules/loops/loop.h"

namespace dtrain::ps {
namespace {

DTRAIN_INLINE double adagrad_rows_ratio(const Step &s, const Norms &norms, uint64_t count,
                                        double &sum) {
    sum += norms.direction / static_cast<double>(count);
    return 1 / (root(sum) + s.epsilon);
}

} // namespace
} // namespace dtrain::ps
