// Runs one operation on a table, for the library's own use.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tables/shared_table.h"

#include <cstdint>
#include <utility>

namespace dtrain::tables {

// Blocking. On failure the text says why.
inline Status run(const SharedTable &table, ps::Transfer &&transfer, int64_t timeout_ns) {
    engine::Request request;
    transfer.table = table.table;
    if (Status s = table.node->post(std::move(transfer), &request, timeout_ns, true);
        s != DTRAIN_OK)
        return s;
    const Status status = request.outcome().status;
    if (status != DTRAIN_OK) set_error_text(request.error());
    return status;
}

} // namespace dtrain::tables
