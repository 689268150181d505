// SPDX-License-Identifier: Apache-2.0
#include "ps/item.h"

#include "device/kernels.h"
#include "ps/rules.h"

namespace dtrain::ps {

Item item_of(const TableParams &params, RequestKind kind, uint64_t argument) {
    uint64_t size = device::dtype_size(params.dtype);
    if (has_trait(kind, Trait::state)) {
        StateArray array;
        if (!find_state(params, argument, array)) return {1, 0};
        if (has_trait(kind, Trait::rows)) return {1, params.dim / array.elements * array.size};
        return {array.elements, array.size};
    }
    if (has_trait(kind, Trait::rows)) return {1, params.dim * size};
    const bool function = has_function(params);
    bool whole_rows = by_whole_rows(params) && (function ? kind != RequestKind::set
                                                         : has_trait(kind, Trait::pushes) &&
                                                               params.consistency != DTRAIN_BSP);
    return whole_rows ? Item{params.row_length, params.row_length * size} : Item{1, size};
}

} // namespace dtrain::ps
