// SPDX-License-Identifier: Apache-2.0
#include "unit/compression/naive.h"

namespace naive {
namespace {

void block(float *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += std::fabs(double(x[i]));
    for (size_t i = 0; i < n; i++) x[i] = std::copysign(float(sum / double(n)), x[i]);
}

const AddModel onebit({.kind = DTRAIN_COMPRESS_ONEBIT, .block = block, .tolerance = 1e-3});

} // namespace
} // namespace naive
