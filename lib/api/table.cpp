// dtrain_table_*
// SPDX-License-Identifier: Apache-2.0
#include "api/operation.h"
#include "ps/client_table.h"
#include "ps/node.h"

using dtrain::fail;
using dtrain::Status;
using dtrain::api::check_handle;
using dtrain::api::guard;
using dtrain::ps::RequestKind;

struct dtrain_table : dtrain::api::Child {
    using Child::Child;
    std::shared_ptr<dtrain::ps::Node> node;
    dtrain::ps::ClientTable *table = nullptr; // the node's client owns it
};

namespace {

// The node of the communicator's session, made at the first table.
Status node_of(dtrain_comm *comm, std::shared_ptr<dtrain::ps::Node> &out) {
    dtrain_context &context = *comm->context;
    std::lock_guard lock(context.session_mutex);
    out = comm->node;
    if (out != nullptr) return DTRAIN_OK;
    if (Status s = dtrain::ps::Node::open(comm->communicator->shared_session(), out);
        s != DTRAIN_OK)
        return s;
    comm->node = out;
    return DTRAIN_OK;
}

Status create(dtrain_comm *comm, const char *name, const dtrain_table_params_t &given,
              dtrain_table **table_p) {
    dtrain::ps::TableParams params;
    if (Status s = dtrain::ps::resolve(given, name, params); s != DTRAIN_OK) return s;
    dtrain::cluster::CallRecord record;
    record.kind = dtrain::cluster::CallKind::table_create;
    record.count = params.length;
    record.dtype = uint8_t(params.dtype);
    if (Status s = comm->communicator->note_call(record); s != DTRAIN_OK) return s;
    auto fresh = std::make_unique<dtrain_table>(comm->context);
    if (Status s = node_of(comm, fresh->node); s != DTRAIN_OK) return s;
    if (Status s = fresh->node->create_table(name, params, 0, fresh->table); s != DTRAIN_OK)
        return s;
    *table_p = fresh.release();
    return DTRAIN_OK;
}

Status check_range(const dtrain_table *table, const char *what, uint64_t first, uint64_t count) {
    uint64_t length = table->table->params.length;
    if (first > length || count > length - first)
        return fail(
            DTRAIN_ERR_INVALID,
            "%s of table \"%s\": elements %llu to %llu + %llu are not all in it, it has %llu", what,
            table->table->name.c_str(), static_cast<unsigned long long>(first),
            static_cast<unsigned long long>(first), static_cast<unsigned long long>(count),
            static_cast<unsigned long long>(length));
    return DTRAIN_OK;
}

struct Range {
    uint64_t first = 0, count = 0;
};

Status run(dtrain_table *table, const char *what, RequestKind kind, Range range, const void *send,
           void *receive, const dtrain_op_params_t *params, dtrain_request_t **request_p) {
    if (Status s = check_handle(table, "table"); s != DTRAIN_OK) return s;
    if (Status s = check_range(table, what, range.first, range.count); s != DTRAIN_OK) return s;
    bool sends =
        kind == RequestKind::push || kind == RequestKind::push_pull || kind == RequestKind::set;
    bool receives = kind == RequestKind::pull || kind == RequestKind::push_pull;
    if (range.count > 0 && ((sends && send == nullptr) || (receives && receive == nullptr)))
        return fail(DTRAIN_ERR_INVALID, "%s of table \"%s\": the buffer is NULL", what,
                    table->table->name.c_str());
    dtrain::ps::Transfer transfer;
    transfer.kind = kind;
    transfer.table = table->table;
    transfer.range = {range.first, range.count};
    transfer.send = send;
    transfer.receive = receive;
    return dtrain::api::run_operation(
        table->context, params, request_p, [&](const dtrain::collectives::CallOptions &options) {
            if (options.scaling != nullptr) return dtrain::api::refuse_scaling(what);
            return table->node->post(transfer, options.request, options.timeout_ns,
                                     options.blocking);
        });
}

} // namespace

dtrain_status_t dtrain_table_create(dtrain_comm_t *comm, const char *name,
                                    const dtrain_table_params_t *params, dtrain_table_t **table_p) {
    if (Status s = check_handle(comm, "comm"); s != DTRAIN_OK) return s;
    if (name == nullptr || params == nullptr || table_p == nullptr)
        return fail(DTRAIN_ERR_INVALID, "%s is NULL",
                    name == nullptr     ? "name"
                    : params == nullptr ? "params"
                                        : "table_p");
    if (!comm->communicator->is_world())
        return fail(DTRAIN_ERR_INVALID,
                    "table \"%.64s\": tables are made on the job's own "
                    "communicator, not on a split, duplicated or shrunk one",
                    name);
    return guard([&]() -> Status {
        dtrain_table_params_t given;
        if (Status s = dtrain::api::take(given, params); s != DTRAIN_OK) return s;
        return create(comm, name, given, table_p);
    });
}

dtrain_status_t dtrain_table_destroy(dtrain_table_t *table) {
    if (table == nullptr || !table->birth.here()) return DTRAIN_OK;
    return guard([&] {
        table->node->destroy_table(table->table);
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
