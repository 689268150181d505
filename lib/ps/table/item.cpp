// Computes the items of requests and their bytes on the wire.
// SPDX-License-Identifier: Apache-2.0
#include "ps/table/item.h"

#include "device/kernels.h"
#include "ps/table/narrow.h"
#include "ps/table/rules.h"

namespace dtrain::ps {

Item item_of(const TableParams &params, RequestKind kind, uint64_t argument) {
    uint64_t size = device::dtype_size(params.dtype);
    if (has_trait(kind, Trait::state)) {
        StateArray array;
        if (!find_state(params, argument, array)) return {1, 0};
        if (has_trait(kind, Trait::rows)) return {1, array.bytes_of(params.dim)};
        return {array.elements, array.numbers * array.size};
    }
    if (has_trait(kind, Trait::rows)) return {1, params.dim * size};
    if (params.row_length == 0) return {1, size};
    const bool pushes = has_trait(kind, Trait::pushes);
    const bool at_once = is_segmented(params) || !collects(params);
    const bool whole_rows = (has_function(params) ? kind != RequestKind::set : pushes && at_once) &&
                            by_whole_rows(params);
    return whole_rows ? Item{params.row_length, params.row_length * size} : Item{1, size};
}

uint64_t narrow_bytes(const TableParams &params, RequestKind kind, uint64_t count) {
    if (!has_trait(kind, Trait::rows)) return row_bytes(params.wire_dtype, count);
    return count * row_bytes(params.wire_dtype, params.dim);
}

} // namespace dtrain::ps
