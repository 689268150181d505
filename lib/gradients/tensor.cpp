// Checks and describes named tensors.
// SPDX-License-Identifier: Apache-2.0
#include "gradients/tensor.h"

#include "device/kernels.h"

namespace dtrain::gradients {

Status check_tensor(std::string_view name, uint64_t count, uint32_t dtype, uint32_t op) {
    if (name.empty() || name.size() > max_name)
        return fail(DTRAIN_ERR_INVALID,
                    "gradients: a tensor's name has %zu bytes (\"%.32s\"); 1 to %zu are allowed",
                    name.size(), std::string(name.substr(0, 32)).c_str(), max_name);
    std::string known(name.substr(0, 64));
    uint64_t size = device::dtype_size(dtype);
    if (size == 0 || !device::op_valid(op, dtype))
        return fail(DTRAIN_ERR_INVALID,
                    "gradients: tensor \"%s\": dtype %u cannot be used with op %u", known.c_str(),
                    dtype, op);
    if (op == DTRAIN_ADASUM)
        return fail(
            DTRAIN_ERR_UNSUPPORTED,
            "gradients: tensor \"%s\": ADASUM does not work with tensors that are packed together; "
            "use dtrain_allreduce()",
            known.c_str());
    if (count == 0 || count > uint64_t(INT64_MAX) / size)
        return fail(DTRAIN_ERR_INVALID,
                    "gradients: tensor \"%s\": a count of %llu elements is not possible",
                    known.c_str(), static_cast<unsigned long long>(count));
    return DTRAIN_OK;
}

uint64_t bytes_of(const TensorSpec &spec) { return spec.count * device::dtype_size(spec.dtype); }

std::string describe(const TensorSpec &spec) {
    return std::string(device::dtype_name(spec.dtype)) + '[' + std::to_string(spec.count) + "] " +
           device::op_name(spec.op);
}

} // namespace dtrain::gradients
