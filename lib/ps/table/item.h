// The items that the payload of a request consists of.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/table/protocol.h"
#include "ps/table/table_params.h"

#include <cstdint>

namespace dtrain::ps {

// Operations are cut into requests at the boundaries of items. An item is one value; or one number
// of a state array, which may belong to a row; or a row of values if the server needs whole rows
// (to compute norms). In a sparse table an item is the data of one key.
struct Item {
    uint64_t elements = 1; // elements of the table in one item
    uint64_t bytes = 0;

    uint64_t bytes_of(uint64_t count) const { return count / elements * bytes; }
};

// argument: as in the header. Item::bytes is 0 if the rule has no such state.
Item item_of(const TableParams &params, RequestKind kind, uint64_t argument);

// Whether requests of this kind carry values in the table's wire_dtype (narrow.h). Pushes and pulls
// do; `set` and state use the caller's type.
inline bool travels_narrow(const TableParams &params, RequestKind kind) {
    return params.wire_dtype != 0 && !has_trait(kind, Trait::state) &&
           has_trait(kind, Trait::pushes | Trait::receives);
}
// Bytes of a request's elements or rows in the wire_dtype, without keys.
uint64_t narrow_bytes(const TableParams &params, RequestKind kind, uint64_t count);
inline uint64_t bytes_on_wire(const TableParams &params, RequestKind kind, const Item &item,
                              uint64_t count) {
    return travels_narrow(params, kind) ? narrow_bytes(params, kind, count) : item.bytes_of(count);
}

} // namespace dtrain::ps
