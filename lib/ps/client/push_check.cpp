// Finds the first NaN or infinity in a push.
// SPDX-License-Identifier: Apache-2.0
#include "ps/client/push_check.h"

#include "ps/client/client_table.h"
#include "ps/client/row_batch.h"
#include "ps/table/finite.h"

#include <optional>

namespace dtrain::ps {
namespace {

// The element or key of the first value that is not finite.
std::optional<uint64_t> find_not_finite(const Transfer &transfer) {
    if (transfer.rows != nullptr) return transfer.rows->find_not_finite();
    const uint64_t count = transfer.range.count,
                   at = first_not_finite_sent(transfer.table->params, transfer.send, count);
    return at < count ? std::optional(transfer.range.first + at) : std::nullopt;
}

} // namespace

Status check_push(const Transfer &transfer, uint32_t worker) {
    const ClientTable &table = *transfer.table;
    if (table.params.not_finite != DTRAIN_NOT_FINITE_REFUSE) return DTRAIN_OK;
    if (!has_trait(transfer.kind, Trait::pushes)) return DTRAIN_OK;
    const std::optional<uint64_t> item = find_not_finite(transfer);
    if (!item) return DTRAIN_OK;
    return fail(DTRAIN_ERR_INVALID,
                "table \"%s\": what worker %u pushed to element, or key, %llu has a NaN or an "
                "infinity, which the table refuses (not_finite); nothing of the push was applied",
                table.name.c_str(), worker, static_cast<unsigned long long>(*item));
}

} // namespace dtrain::ps
