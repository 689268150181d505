// What the payload of a request is made of. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/table/protocol.h"
#include "ps/table/table_params.h"

#include <cstdint>

namespace dtrain::ps {

// Requests are cut between items: one value; one number of a state array, which may stand for a
// row; a row of values where the server needs whole rows (norms are taken at once). Of a sparse
// table an item is what one key stands for.
struct Item {
    uint64_t elements = 1; // of the table
    uint64_t bytes = 0;

    uint64_t bytes_of(uint64_t count) const { return count / elements * bytes; }
};

// argument: as in the header. bytes is 0 when the rule has no such state.
Item item_of(const TableParams &params, RequestKind kind, uint64_t argument);

// Whether values of that kind travel in the table's wire_dtype (narrow.h): those of pushes and
// pulls. What is set, and state, travels as the caller has it.
inline bool travels_narrow(const TableParams &params, RequestKind kind) {
    return params.wire_dtype != 0 && !has_trait(kind, Trait::state) &&
           has_trait(kind, Trait::pushes | Trait::receives);
}
// Of the elements, or rows, of one request, without keys.
uint64_t narrow_bytes(const TableParams &params, RequestKind kind, uint64_t count);
inline uint64_t bytes_on_wire(const TableParams &params, RequestKind kind, const Item &item,
                              uint64_t count) {
    return travels_narrow(params, kind) ? narrow_bytes(params, kind, count) : item.bytes_of(count);
}

} // namespace dtrain::ps
