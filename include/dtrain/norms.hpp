// Norms of arrays on this worker.
// SPDX-License-Identifier: Apache-2.0
#ifndef DTRAIN_NORMS_HPP
#define DTRAIN_NORMS_HPP
#include "types.hpp"

#include <vector>

namespace dtrain {
inline namespace cxx {

// Scales arrays of floating types, such as the gradients of all tables, in place, so that their
// common L2 norm is at most max_norm; returns the norm before that: clip_by_global_norm({a, b},
// 1.0). If an array has a NaN or an infinity, throws an InvalidError and changes nothing.
inline double clip_by_global_norm(const std::vector<Output> &arrays, double max_norm) {
    std::vector<void *> data;
    std::vector<uint64_t> counts;
    std::vector<uint32_t> dtypes;
    for (const Output &array : arrays) {
        data.push_back(array.data);
        counts.push_back(array.count);
        dtypes.push_back(static_cast<uint32_t>(array.dtype));
    }
    double norm = 0;
    detail::check(dtrain_clip_by_global_norm(data.data(), counts.data(), dtypes.data(),
                                             static_cast<uint32_t>(arrays.size()), max_norm,
                                             &norm));
    return norm;
}

} // namespace cxx
} // namespace dtrain
#endif
