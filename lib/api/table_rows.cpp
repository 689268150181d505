// dtrain_table_*_rows
// SPDX-License-Identifier: Apache-2.0
#include "api/table.h"
#include "ps/row_batch.h"

using dtrain::fail;
using dtrain::Status;
using dtrain::ps::RequestKind;
using dtrain::ps::RowBatch;

namespace {

Status check(const dtrain_table *table, const char *what, const uint64_t *keys, uint64_t count,
             const void *values) {
    if (Status s = dtrain::api::check_handle(table, "table"); s != DTRAIN_OK) return s;
    const dtrain::ps::ClientTable &its = *table->table;
    if (!is_sparse(its.params))
        return fail(DTRAIN_ERR_INVALID,
                    "%s of table \"%s\": the table is dense (its parameter dim is 0)", what,
                    its.name.c_str());
    if (count > 0 && (keys == nullptr || values == nullptr))
        return fail(DTRAIN_ERR_INVALID, "%s of table \"%s\": the array of %s is NULL", what,
                    its.name.c_str(), keys == nullptr ? "keys" : "values");
    uint64_t bytes = 0;
    if (count > UINT32_MAX || __builtin_mul_overflow(count, its.row_bytes, &bytes))
        return fail(DTRAIN_ERR_INVALID, "%s of table \"%s\": %llu rows are too many for one call",
                    what, its.name.c_str(), static_cast<unsigned long long>(count));
    return DTRAIN_OK;
}

// make(): the rows as they travel, made in the caller's thread.
template <class F>
Status run(dtrain_table *table, const char *what, RequestKind kind, uint64_t count,
           const dtrain_op_params_t *params, dtrain_request_t **request_p, F &&make) {
    return dtrain::api::run_operation(
        table->context, params, request_p, [&](const dtrain::collectives::CallOptions &options) {
            if (options.scaling != nullptr) return dtrain::api::refuse_scaling(what);
            dtrain::ps::Transfer transfer;
            transfer.kind = kind;
            transfer.table = table->table;
            transfer.range = {0, count};
            transfer.rows = make();
            return table->node->post(transfer, options.request, options.timeout_ns,
                                     options.blocking);
        });
}

} // namespace

dtrain_status_t dtrain_table_push_rows(dtrain_table_t *table, const uint64_t *keys, uint64_t count,
                                       const void *values, const dtrain_op_params_t *params,
                                       dtrain_request_t **request_p) {
    if (Status s = check(table, "push_rows", keys, count, values); s != DTRAIN_OK) return s;
    return run(table, "push_rows", RequestKind::push_rows, count, params, request_p,
               [&] { return RowBatch::of_push(*table->table, keys, count, values); });
}

dtrain_status_t dtrain_table_pull_rows(dtrain_table_t *table, const uint64_t *keys, uint64_t count,
                                       void *values, const dtrain_op_params_t *params,
                                       dtrain_request_t **request_p) {
    if (Status s = check(table, "pull_rows", keys, count, values); s != DTRAIN_OK) return s;
    return run(table, "pull_rows", RequestKind::pull_rows, count, params, request_p,
               [&] { return RowBatch::of_pull(*table->table, keys, count, values); });
}
