// What the payload of a request is made of. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/protocol.h"
#include "ps/table_params.h"

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

} // namespace dtrain::ps
