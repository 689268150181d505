// Loops over elements for error feedback.
// SPDX-License-Identifier: Apache-2.0
#include "compression/elements.h"

#if defined(__GNUC__) && !defined(__clang__) // so that loops are vectorized
#pragma GCC optimize("O3", "no-trapping-math")
#endif

namespace dtrain::compression {

void accumulate(float *__restrict kept, const float *__restrict more, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) kept[i] += more[i];
}

void keep_rest(float *__restrict kept, const float *__restrict sent, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) kept[i] = zero_unless_finite(kept[i] - sent[i]);
}

double square_sum(const float *x, uint64_t n) {
    double sum = 0;
    for (uint64_t i = 0; i < n; i++) sum += double(x[i]) * double(x[i]);
    return sum;
}

} // namespace dtrain::compression
