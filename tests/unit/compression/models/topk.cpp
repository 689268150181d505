// SPDX-License-Identifier: Apache-2.0
#include "unit/compression/naive.h"

#include <algorithm>
#include <numeric>

namespace naive {
namespace {

Vector keep_largest(const Params &params, const Vector &x) {
    std::vector<size_t> order(x.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return std::fabs(x[a]) > std::fabs(x[b]); });
    Vector kept(x.size());
    for (size_t i = 0; i < params.kept; i++) kept[order[i]] = x[order[i]];
    return kept;
}

const AddModel topk({.kind = DTRAIN_COMPRESS_TOPK, .sent = keep_largest});

} // namespace
} // namespace naive
