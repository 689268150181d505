// Converts values from their format on the wire.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/request_values.h"

#include "device/kernels.h"
#include "ps/table/item.h"
#include "ps/table/narrow.h"

namespace dtrain::ps {

const void *RequestValues::computed(const RequestHeader &header, const Items &items,
                                    const void *payload) {
    const void *sent = numbers_of(header, payload);
    const uint32_t dtype =
        travels_narrow(params_, header.kind) ? params_.wire_dtype : params_.dtype;
    if (dtype == computed_dtype(params_)) return sent;
    if (copy_.empty()) // room for the most elements that a request can have
        copy_.resize(chunk_bytes / device::dtype_size(params_.dtype) * sizeof(float));
    const uint64_t run = items.run();
    const auto *from = static_cast<const char *>(sent);
    auto *to = reinterpret_cast<float *>(copy_.data());
    for (uint64_t at = 0; at < items.elements(); at += run, from += row_bytes(dtype, run))
        read_row(to + at, dtype, from, run);
    return to;
}

} // namespace dtrain::ps
