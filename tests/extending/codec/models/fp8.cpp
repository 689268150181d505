// SPDX-License-Identifier: Apache-2.0
#include "unit/compression/naive.h"

namespace naive {
namespace {

// To the nearest number with 3 bits after the first one, or of 2^-9.
float rounded(float x) {
    int exponent;
    std::frexp(x, &exponent);
    const double step = std::ldexp(1, std::max(exponent - 1, -6) - 3);
    return float(std::nearbyint(double(x) / step) * step);
}

void block(float *x, size_t n) {
    const float most = largest(x, n);
    for (size_t i = 0; i < n; i++) x[i] = most == 0 ? 0 : most / 448 * rounded(x[i] * (448 / most));
}

const AddModel fp8({.kind = DTRAIN_COMPRESS_FP8, .block = block});

} // namespace
} // namespace naive
