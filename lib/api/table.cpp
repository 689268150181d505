// Implements dtrain_table_*.
// SPDX-License-Identifier: Apache-2.0
#include "api/table.h"
#include "api/staging.h"
#include "ps/table/item.h"

#include <bit>

using dtrain::fail;
using dtrain::fail_within;
using dtrain::Status;
using dtrain::api::check_handle;
using dtrain::api::guard;
using dtrain::collectives::CallOptions;
using dtrain::ps::Range;
using dtrain::ps::RequestKind;
using dtrain::ps::Trait;

namespace {

Status check_range(const dtrain_table *table, const char *what, const char *items, Range range,
                   uint64_t length) {
    if (range.first > length || range.count > length - range.first)
        return fail(
            DTRAIN_ERR_INVALID,
            "%s of table \"%s\": %s %llu to %llu + %llu are out of range, it has %llu", what,
            table->table->name.c_str(), items, static_cast<unsigned long long>(range.first),
            static_cast<unsigned long long>(range.first),
            static_cast<unsigned long long>(range.count), static_cast<unsigned long long>(length));
    return DTRAIN_OK;
}

Status check_dense(const dtrain_table *table, const char *what) {
    if (!is_sparse(table->table->params)) return DTRAIN_OK;
    return fail(
        DTRAIN_ERR_INVALID,
        "%s of table \"%s\": the table is sparse: use the calls for rows (dtrain_table_*_rows)",
        what, table->table->name.c_str());
}

Status check_rows(const dtrain_table *table, const char *what, Range range) {
    const dtrain::ps::TableParams &params = table->table->params;
    uint64_t row = params.row_length;
    if (row == 0 || !dtrain::ps::by_whole_rows(params) ||
        (range.first % row == 0 && range.count % row == 0))
        return DTRAIN_OK;
    return fail(
        DTRAIN_ERR_INVALID,
        "%s of table \"%s\": elements %llu to %llu + %llu are not whole rows of %llu elements, "
        "as its rule requires",
        what, table->table->name.c_str(), static_cast<unsigned long long>(range.first),
        static_cast<unsigned long long>(range.first), static_cast<unsigned long long>(range.count),
        static_cast<unsigned long long>(row));
}

Status post(dtrain_table *table, const char *what, dtrain::ps::Transfer &transfer,
            const dtrain_op_params_t *params, dtrain_request_t **request_p) {
    bool sends = has_trait(transfer.kind, Trait::sends),
         receives = has_trait(transfer.kind, Trait::receives);
    if (transfer.range.count > 0 &&
        ((sends && transfer.send == nullptr) || (receives && transfer.receive == nullptr)))
        return fail(DTRAIN_ERR_INVALID, "%s of table \"%s\": the buffer is NULL", what,
                    table->table->name.c_str());
    transfer.table = table->table;
    if (Status s = take_terms(table, what, params, transfer); s != DTRAIN_OK) return s;
    dtrain::api::Staging staging(table->context);
    if (table->context->domains.any()) [[unlikely]] {
        const auto item = item_of(table->table->params, transfer.kind, transfer.argument);
        const uint64_t bytes = item.bytes_of(transfer.range.count);
        Status s = staging.reads(transfer.send, bytes);
        if (s == DTRAIN_OK) s = staging.writes(transfer.receive, bytes);
        if (s != DTRAIN_OK)
            return fail_within(s, "%s of table \"%s\"", what, table->table->name.c_str());
    }
    return dtrain::api::run_operation(
        table->context, params, request_p,
        [&](const CallOptions &options) {
            if (options.scaling != nullptr) return dtrain::api::refuse_scaling(what);
            transfer.priority = options.priority;
            return dtrain::api::post_staged(
                table->context, staging.staged(), options, {}, [&](const CallOptions &on_host) {
                    return table->node->post(std::move(transfer), on_host.request,
                                             on_host.timeout_ns, on_host.blocking, on_host.awaited);
                });
        },
        {.table_terms = true});
}

Status run(dtrain_table *table, const char *what, RequestKind kind, Range range, const void *send,
           void *receive, const dtrain_op_params_t *params, dtrain_request_t **request_p) {
    if (Status s = check_handle(table, "table"); s != DTRAIN_OK) return s;
    uint64_t length = table->table->params.length;
    if (has_trait(kind, Trait::ranged))
        if (Status s = check_dense(table, what); s != DTRAIN_OK) return s;
    if (Status s = check_range(table, what, "elements", range, length); s != DTRAIN_OK) return s;
    bool whole = has_trait(kind, Trait::pushes) ||
                 (has_function(table->table->params) && has_trait(kind, Trait::receives));
    if (Status s = whole ? check_rows(table, what, range) : DTRAIN_OK; s != DTRAIN_OK) return s;
    dtrain::ps::Transfer transfer;
    transfer.kind = kind;
    transfer.range = range;
    transfer.send = send;
    transfer.receive = receive;
    return post(table, what, transfer, params, request_p);
}

Status run_state(dtrain_table *table, const char *what, RequestKind kind, uint32_t index,
                 Range range, const void *send, void *receive, const dtrain_op_params_t *params,
                 dtrain_request_t **request_p) {
    dtrain::ps::StateArray array;
    if (Status s = dtrain::api::find_state(table, index, array); s != DTRAIN_OK) return s;
    if (Status s = check_dense(table, what); s != DTRAIN_OK) return s;
    uint64_t count = array.numbers_of(table->table->params.length);
    if (Status s = check_range(table, what, "numbers", range, count); s != DTRAIN_OK) return s;
    if (range.first % array.numbers != 0 || range.count % array.numbers != 0)
        return fail(
            DTRAIN_ERR_INVALID,
            "%s of table \"%s\": numbers %llu to %llu + %llu are not whole rows of %llu numbers",
            what, table->table->name.c_str(), static_cast<unsigned long long>(range.first),
            static_cast<unsigned long long>(range.first),
            static_cast<unsigned long long>(range.count),
            static_cast<unsigned long long>(array.numbers));
    dtrain::ps::Transfer transfer;
    transfer.kind = kind;
    transfer.range = {range.first / array.numbers * array.elements,
                      range.count / array.numbers * array.elements};
    transfer.argument = index;
    transfer.send = send;
    transfer.receive = receive;
    return post(table, what, transfer, params, request_p);
}

} // namespace

Status dtrain::api::find_state(const dtrain_table *table, uint32_t index, ps::StateArray &array) {
    if (Status s = check_handle(table, "table"); s != DTRAIN_OK) return s;
    if (index < table->states.size()) {
        array = table->states[index];
        return DTRAIN_OK;
    }
    return fail(DTRAIN_ERR_NOT_FOUND, "table \"%s\": its rule, %s, has no state array %u",
                table->table->name.c_str(), ps::rule_title(table->table->params).c_str(), index);
}

Status dtrain::api::take_terms(const dtrain_table *table, const char *what,
                               const dtrain_op_params_t *params, ps::Transfer &transfer) {
    if (params == nullptr) return DTRAIN_OK;
    dtrain_op_params_t given;
    if (Status s = take(given, params); s != DTRAIN_OK) return s;
    const ps::TableParams &its = table->table->params;
    if (given.weight != 0 && (!has_trait(transfer.kind, Trait::pushes) || !ps::takes_weights(its) ||
                              !ps::valid_weight(given.weight)))
        return fail(
            DTRAIN_ERR_INVALID,
            "%s of table \"%s\": weight %g: only a push to a floating-point table that aggregates "
            "by AVG under BSP or QUORUM takes one, and it must be finite and above 0",
            what, table->table->name.c_str(), given.weight);
    const bool pulls =
        transfer.kind == RequestKind::pull || transfer.kind == RequestKind::pull_rows;
    if (given.min_version != 0 && !pulls)
        return fail(DTRAIN_ERR_INVALID, "%s of table \"%s\": min_version is only for pulls", what,
                    table->table->name.c_str());
    transfer.weight = given.weight;
    transfer.min_version = given.min_version;
    return DTRAIN_OK;
}

dtrain_status_t dtrain_table_destroy(dtrain_table_t *table) {
    if (table == nullptr || !table->birth.here()) return DTRAIN_OK;
    return guard([&] {
        table->node->destroy_table(table->table, table->node->session().op_timeout_ns());
        delete table;
        return DTRAIN_OK;
    });
}

dtrain_status_t dtrain_table_push(dtrain_table_t *table, uint64_t first, uint64_t count,
                                  const void *values, const dtrain_op_params_t *params,
                                  dtrain_request_t **request_p) {
    return run(table, "push", RequestKind::push, {first, count}, values, nullptr, params,
               request_p);
}

dtrain_status_t dtrain_table_pull(dtrain_table_t *table, uint64_t first, uint64_t count,
                                  void *values, const dtrain_op_params_t *params,
                                  dtrain_request_t **request_p) {
    return run(table, "pull", RequestKind::pull, {first, count}, nullptr, values, params,
               request_p);
}

dtrain_status_t dtrain_table_push_pull(dtrain_table_t *table, uint64_t first, uint64_t count,
                                       const void *pushed, void *pulled,
                                       const dtrain_op_params_t *params,
                                       dtrain_request_t **request_p) {
    return run(table, "push_pull", RequestKind::push_pull, {first, count}, pushed, pulled, params,
               request_p);
}

dtrain_status_t dtrain_table_set(dtrain_table_t *table, uint64_t first, uint64_t count,
                                 const void *values, const dtrain_op_params_t *params,
                                 dtrain_request_t **request_p) {
    return run(table, "set", RequestKind::set, {first, count}, values, nullptr, params, request_p);
}

dtrain_status_t dtrain_table_clock(dtrain_table_t *table, const dtrain_op_params_t *params,
                                   dtrain_request_t **request_p) {
    return run(table, "clock", RequestKind::clock, {}, nullptr, nullptr, params, request_p);
}

dtrain_status_t dtrain_table_set_ready(dtrain_table_t *table, const dtrain_op_params_t *params,
                                       dtrain_request_t **request_p) {
    return run(table, "set_ready", RequestKind::set_ready, {}, nullptr, nullptr, params, request_p);
}

dtrain_status_t dtrain_table_wait_ready(dtrain_table_t *table, const dtrain_op_params_t *params,
                                        dtrain_request_t **request_p) {
    return run(table, "wait_ready", RequestKind::wait_ready, {}, nullptr, nullptr, params,
               request_p);
}

dtrain_status_t dtrain_table_set_rate(dtrain_table_t *table, double rate,
                                      const dtrain_op_params_t *params,
                                      dtrain_request_t **request_p) {
    if (Status s = check_handle(table, "table"); s != DTRAIN_OK) return s;
    const dtrain::ps::TableParams &its = table->table->params;
    if (!has_rate(its) || !valid_rate(its, rate))
        return fail(DTRAIN_ERR_INVALID,
                    "set_rate of table \"%s\": %g is not a valid learning rate for rule %s",
                    table->table->name.c_str(), rate, rule_title(its).c_str());
    dtrain::ps::Transfer transfer;
    transfer.kind = RequestKind::set_rate;
    transfer.argument = std::bit_cast<uint64_t>(rate);
    return post(table, "set_rate", transfer, params, request_p);
}

dtrain_status_t dtrain_table_set_updates(dtrain_table_t *table, uint64_t count,
                                         const dtrain_op_params_t *params,
                                         dtrain_request_t **request_p) {
    if (Status s = check_handle(table, "table"); s != DTRAIN_OK) return s;
    if (count > dtrain::ps::most_updates)
        return fail(DTRAIN_ERR_INVALID,
                    "set_updates of table \"%s\": %llu updates are more than 2^53",
                    table->table->name.c_str(), static_cast<unsigned long long>(count));
    dtrain::ps::Transfer transfer;
    transfer.kind = RequestKind::set_updates;
    transfer.argument = count;
    return post(table, "set_updates", transfer, params, request_p);
}

dtrain_status_t dtrain_table_describe_state(const dtrain_table_t *table, uint32_t index,
                                            const char **name_p, uint32_t *dtype_p,
                                            uint64_t *count_p) {
    if (name_p == nullptr || dtype_p == nullptr || count_p == nullptr)
        return fail(DTRAIN_ERR_INVALID, "table_describe_state: name_p, dtype_p or count_p is NULL");
    dtrain::ps::StateArray array;
    if (Status s = dtrain::api::find_state(table, index, array); s != DTRAIN_OK) return s;
    const dtrain::ps::TableParams &its = table->table->params;
    *name_p = table->states[index].name.c_str();
    *dtype_p = array.dtype;
    *count_p = array.numbers_of(is_sparse(its) ? its.dim : its.length);
    return DTRAIN_OK;
}

dtrain_status_t dtrain_table_pull_state(dtrain_table_t *table, uint32_t index, uint64_t first,
                                        uint64_t count, void *state,
                                        const dtrain_op_params_t *params,
                                        dtrain_request_t **request_p) {
    return run_state(table, "pull_state", RequestKind::pull_state, index, {first, count}, nullptr,
                     state, params, request_p);
}

dtrain_status_t dtrain_table_set_state(dtrain_table_t *table, uint32_t index, uint64_t first,
                                       uint64_t count, const void *state,
                                       const dtrain_op_params_t *params,
                                       dtrain_request_t **request_p) {
    return run_state(table, "set_state", RequestKind::set_state, index, {first, count}, state,
                     nullptr, params, request_p);
}
