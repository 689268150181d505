// SPDX-License-Identifier: Apache-2.0
#include "unit/compression/naive.h"

namespace naive {
namespace {

void block(float *x, size_t n) {
    const float most = largest(x, n);
    for (size_t i = 0; i < n; i++)
        x[i] = most == 0 ? 0 : most / 127 * std::nearbyint(x[i] * (127 / most));
}

const AddModel int8({.kind = DTRAIN_COMPRESS_INT8, .block = block});

} // namespace
} // namespace naive
