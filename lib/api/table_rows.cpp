// Implements dtrain_table_*_rows.
// SPDX-License-Identifier: Apache-2.0
#include "api/staging.h"
#include "api/table.h"
#include "ps/client/row_batch.h"
#include "ps/table/item.h"

using dtrain::fail;
using dtrain::fail_within;
using dtrain::Status;
using dtrain::api::Staging;
using dtrain::collectives::CallOptions;
using dtrain::ps::ClientTable;
using dtrain::ps::RequestKind;
using dtrain::ps::RowBatch;
using dtrain::ps::Trait;
using dtrain::ps::Transfer;

namespace {

Status check_sparse(const dtrain_table *table, const char *what) {
    if (Status s = dtrain::api::check_handle(table, "table"); s != DTRAIN_OK) return s;
    if (is_sparse(table->table->params)) return DTRAIN_OK;
    return fail(DTRAIN_ERR_INVALID,
                "%s of table \"%s\": the table is dense (its parameter dim is 0), so it has no "
                "rows with keys",
                what, table->table->name.c_str());
}

Status check(const dtrain_table *table, const char *what, const RowBatch::Call &call) {
    const dtrain::ps::ClientTable &its = *table->table;
    const bool sends = call.send != nullptr || !has_trait(call.kind, Trait::carries);
    const bool receives = call.receive != nullptr || !has_trait(call.kind, Trait::receives);
    if (call.count > 0 && (call.keys == nullptr || !sends || !receives))
        return fail(DTRAIN_ERR_INVALID, "%s of table \"%s\": the array of %s is NULL", what,
                    its.name.c_str(), call.keys == nullptr ? "keys" : "rows");
    uint64_t bytes = item_of(its.params, call.kind, call.argument).bytes;
    if (call.count > UINT32_MAX || __builtin_mul_overflow(call.count, bytes, &bytes))
        return fail(DTRAIN_ERR_INVALID, "%s of table \"%s\": %llu rows are too many for one call",
                    what, its.name.c_str(), static_cast<unsigned long long>(call.count));
    return DTRAIN_OK;
}

Status post(dtrain_table *table, const char *what, Transfer &transfer, const CallOptions &options) {
    if (options.scaling != nullptr) return dtrain::api::refuse_scaling(what);
    transfer.table = table->table;
    transfer.priority = options.priority;
    return table->node->post(std::move(transfer), options.request, options.timeout_ns,
                             options.blocking, options.awaited);
}

Status stage(const dtrain_table *table, const char *what, Staging &staging, RowBatch::Call &call) {
    const ClientTable &its = *table->table;
    const uint64_t bytes = call.count * item_of(its.params, call.kind, call.argument).bytes;
    const void *keys = call.keys;
    Status s = staging.reads(keys, call.count * sizeof *call.keys);
    if (s == DTRAIN_OK) s = staging.reads(call.send, bytes);
    if (s == DTRAIN_OK) s = staging.writes(call.receive, bytes);
    if (s != DTRAIN_OK) return fail_within(s, "%s of table \"%s\"", what, its.name.c_str());
    call.keys = static_cast<const uint64_t *>(keys);
    return DTRAIN_OK;
}

// The caller's thread packs the rows for the network, not the agent.
Status run(dtrain_table *table, const char *what, RowBatch::Call call,
           const dtrain_op_params_t *params, dtrain_request_t **request_p) {
    if (Status s = check_sparse(table, what); s != DTRAIN_OK) return s;
    dtrain::ps::StateArray array;
    const auto index = uint32_t(call.argument);
    if (has_trait(call.kind, Trait::state))
        if (Status s = dtrain::api::find_state(table, index, array); s != DTRAIN_OK) return s;
    if (Status s = check(table, what, call); s != DTRAIN_OK) return s;
    Staging staging(table->context);
    if (table->context->domains.any()) [[unlikely]]
        if (Status s = stage(table, what, staging, call); s != DTRAIN_OK) return s;
    const auto go = [&](const CallOptions &options) {
        Transfer transfer;
        transfer.kind = call.kind;
        transfer.range = {0, call.count};
        transfer.argument = call.argument;
        transfer.table = table->table;
        if (Status s = dtrain::api::take_terms(table, what, params, transfer); s != DTRAIN_OK)
            return s;
        transfer.rows = std::make_shared<RowBatch>(*table->table, call);
        return post(table, what, transfer, options);
    };
    return dtrain::api::run_operation(table->context, params, request_p,
                                      [&](const CallOptions &options) {
                                          return dtrain::api::post_staged(
                                              table->context, staging.staged(), options, {}, go);
                                      },
                                      {.table_terms = true});
}

} // namespace

dtrain_status_t dtrain_table_push_rows(dtrain_table_t *table, const uint64_t *keys, uint64_t count,
                                       const void *values, const dtrain_op_params_t *params,
                                       dtrain_request_t **request_p) {
    return run(table, "push_rows", {RequestKind::push_rows, keys, count, values}, params,
               request_p);
}

dtrain_status_t dtrain_table_pull_rows(dtrain_table_t *table, const uint64_t *keys, uint64_t count,
                                       void *values, const dtrain_op_params_t *params,
                                       dtrain_request_t **request_p) {
    return run(table, "pull_rows", {RequestKind::pull_rows, keys, count, nullptr, values}, params,
               request_p);
}

dtrain_status_t dtrain_table_push_pull_rows(dtrain_table_t *table, const uint64_t *keys,
                                            uint64_t count, const void *pushed, void *pulled,
                                            const dtrain_op_params_t *params,
                                            dtrain_request_t **request_p) {
    return run(table, "push_pull_rows", {RequestKind::push_pull_rows, keys, count, pushed, pulled},
               params, request_p);
}

dtrain_status_t dtrain_table_set_rows(dtrain_table_t *table, const uint64_t *keys, uint64_t count,
                                      const void *values, const dtrain_op_params_t *params,
                                      dtrain_request_t **request_p) {
    return run(table, "set_rows", {RequestKind::set_rows, keys, count, values}, params, request_p);
}

dtrain_status_t dtrain_table_erase_rows(dtrain_table_t *table, const uint64_t *keys, uint64_t count,
                                        const dtrain_op_params_t *params,
                                        dtrain_request_t **request_p) {
    return run(table, "erase_rows", {RequestKind::erase_rows, keys, count}, params, request_p);
}

dtrain_status_t dtrain_table_count_rows(dtrain_table_t *table, uint64_t *count_p,
                                        const dtrain_op_params_t *params,
                                        dtrain_request_t **request_p) {
    if (Status s = check_sparse(table, "count_rows"); s != DTRAIN_OK) return s;
    if (count_p == nullptr) return fail(DTRAIN_ERR_INVALID, "table_count_rows: count_p is NULL");
    return dtrain::api::run_operation(table->context, params, request_p,
                                      [&](const CallOptions &options) {
                                          Transfer transfer;
                                          transfer.kind = RequestKind::count_rows;
                                          transfer.total_p = count_p;
                                          return post(table, "count_rows", transfer, options);
                                      });
}

dtrain_status_t dtrain_table_pull_state_rows(dtrain_table_t *table, uint32_t index,
                                             const uint64_t *keys, uint64_t count, void *state,
                                             const dtrain_op_params_t *params,
                                             dtrain_request_t **request_p) {
    return run(table, "pull_state_rows",
               {RequestKind::pull_state_rows, keys, count, nullptr, state, index}, params,
               request_p);
}

dtrain_status_t dtrain_table_set_state_rows(dtrain_table_t *table, uint32_t index,
                                            const uint64_t *keys, uint64_t count, const void *state,
                                            const dtrain_op_params_t *params,
                                            dtrain_request_t **request_p) {
    return run(table, "set_state_rows",
               {RequestKind::set_state_rows, keys, count, state, nullptr, index}, params,
               request_p);
}
