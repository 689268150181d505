// Implements dtrain_clip_by_global_norm(): scales several arrays by their common norm.
// SPDX-License-Identifier: Apache-2.0
#include "api/guard.h"
#include "device/finite.h"
#include "device/global_norm.h"
#include "device/kernels.h"

#include <cmath>
#include <vector>

namespace {

using dtrain::fail, dtrain::Status;
using dtrain::device::FloatArray, dtrain::device::GlobalNorm;

Status check(void *const *arrays, const uint64_t *counts, const uint32_t *dtypes, uint32_t count,
             double max_norm) {
    if (!(max_norm > 0) || std::isinf(max_norm))
        return fail(DTRAIN_ERR_INVALID,
                    "clip_by_global_norm: max_norm is %g; it must be finite and above 0", max_norm);
    if (count > 0 && (arrays == nullptr || counts == nullptr || dtypes == nullptr))
        return fail(DTRAIN_ERR_INVALID, "clip_by_global_norm: %s is NULL",
                    arrays == nullptr   ? "arrays"
                    : counts == nullptr ? "counts"
                                        : "dtypes");
    for (uint32_t i = 0; i < count; i++) {
        const char *name = dtrain::device::dtype_name(dtypes[i]);
        if (name == nullptr || !dtrain::device::is_floating(dtypes[i]))
            return fail(DTRAIN_ERR_INVALID,
                        "clip_by_global_norm: array %u has dtype %s (%u), which is not a "
                        "floating-point type",
                        i, name == nullptr ? "?" : name, dtypes[i]);
        if (counts[i] > SIZE_MAX / dtrain::device::dtype_size(dtypes[i]))
            return fail(DTRAIN_ERR_INVALID,
                        "clip_by_global_norm: array %u has %llu elements, more than fit in memory",
                        i, static_cast<unsigned long long>(counts[i]));
        if (counts[i] > 0 && arrays[i] == nullptr)
            return fail(DTRAIN_ERR_INVALID, "clip_by_global_norm: array %u is NULL", i);
    }
    return DTRAIN_OK;
}

Status not_finite(const std::vector<FloatArray> &arrays) {
    for (size_t i = 0; i < arrays.size(); i++) {
        const auto &[values, count, dtype] = arrays[i];
        const uint64_t at = dtrain::device::first_not_finite(values, count, dtype);
        if (at < count)
            return fail(DTRAIN_ERR_INVALID,
                        "clip_by_global_norm: element %llu of array %zu is not finite; nothing was "
                        "changed",
                        static_cast<unsigned long long>(at), i);
    }
    return fail(DTRAIN_ERR_INVALID,
                "clip_by_global_norm: another thread changed the arrays during the call");
}

} // namespace

dtrain_status_t dtrain_clip_by_global_norm(void *const *arrays, const uint64_t *counts,
                                           const uint32_t *dtypes, uint32_t array_count,
                                           double max_norm, double *norm_p) {
    return dtrain::api::guard([&]() -> Status {
        if (Status s = check(arrays, counts, dtypes, array_count, max_norm); s != DTRAIN_OK)
            return s;
        std::vector<FloatArray> all(array_count);
        for (uint32_t i = 0; i < array_count; i++) all[i] = {arrays[i], counts[i], dtypes[i]};
        const GlobalNorm norm = dtrain::device::global_norm(all);
        if (!std::isfinite(norm.fraction)) return not_finite(all);
        if (norm.value() > max_norm)
            for (const FloatArray &array : all) dtrain::device::clip(array, max_norm, norm);
        if (norm_p != nullptr) *norm_p = norm.value();
        return DTRAIN_OK;
    });
}
