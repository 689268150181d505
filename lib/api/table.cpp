// dtrain_table_*
// SPDX-License-Identifier: Apache-2.0
#include "api/table.h"

#include <bit>

using dtrain::fail;
using dtrain::Status;
using dtrain::api::check_handle;
using dtrain::api::guard;
using dtrain::api::guard_new;
using dtrain::cluster::Session;
using dtrain::ps::Range;
using dtrain::ps::RequestKind;
using dtrain::ps::Trait;

namespace {

// The node of the communicator's session, made at the first table.
Status node_of(dtrain_comm *comm, std::shared_ptr<dtrain::ps::Node> &out) {
    dtrain_context &context = *comm->context;
    std::lock_guard lock(context.session_mutex);
    out = comm->node;
    if (out != nullptr) return DTRAIN_OK;
    if (Status s =
            dtrain::ps::Node::open(comm->communicator->shared_session(), context.functions, out);
        s != DTRAIN_OK)
        return s;
    comm->node = out;
    return DTRAIN_OK;
}

// Collective: rank 0 has the servers restore the table, all learn what came of it.
Status restore_newest(dtrain_comm *comm, dtrain_table &table, int64_t deadline_ns) {
    enum { status, step, lineage, serial, numbers };
    uint64_t found = UINT64_MAX;
    dtrain::ps::Checkpointer &checkpointer = table.node->checkpointer();
    dtrain::ps::Lineage::Point point;
    int64_t outcome[numbers] = {};
    if (comm->communicator->rank() == 0)
        outcome[status] = checkpointer.restore({&table.table, 1}, deadline_ns, found, &point);
    outcome[step] = int64_t(found);
    outcome[lineage] = int64_t(point.lineage);
    outcome[serial] = int64_t(point.serial);
    const std::string why = dtrain::error_text();
    // Rank 0 tells servers first to forget what it gave up.
    const int64_t told_by =
        deadline_ns == INT64_MAX ? INT64_MAX : deadline_ns + 2 * Session::goodbye_ns;
    if (Status s = comm->communicator->run_until({.kind = dtrain::collectives::Kind::broadcast,
                                                  .recv = outcome,
                                                  .count = numbers,
                                                  .dtype = DTRAIN_I64,
                                                  .root = 0},
                                                 told_by);
        s != DTRAIN_OK)
        return s;
    if (outcome[status] == DTRAIN_OK) {
        table.restored = uint64_t(outcome[step]);
        checkpointer.take({.lineage = uint64_t(outcome[lineage]),
                           .serial = uint64_t(outcome[serial]),
                           .step = *table.restored},
                          *table.table);
    }
    if (outcome[status] == DTRAIN_OK || outcome[status] == DTRAIN_ERR_NOT_FOUND) return DTRAIN_OK;
    return fail(Status(outcome[status]), "table \"%s\" cannot be restored: %s",
                table.table->name.c_str(),
                comm->communicator->rank() == 0 ? why.c_str() : "see rank 0's error");
}

// Copies the caller's segments, whose structs may be shorter or longer than ours.
Status take_segments(dtrain_table_params_t &given, dtrain_segment_t *segments) {
    if (given.reserved != 0) return fail(DTRAIN_ERR_INVALID, "params.reserved is not 0");
    if (given.segment_count > DTRAIN_SEGMENTS)
        return fail(DTRAIN_ERR_INVALID, "segments: %u, at most %d are allowed", given.segment_count,
                    DTRAIN_SEGMENTS);
    if ((given.segments == nullptr) != (given.segment_count == 0))
        return fail(DTRAIN_ERR_INVALID, "segments: %u at %s", given.segment_count,
                    given.segments == nullptr ? "NULL" : "an address");
    const auto *from = reinterpret_cast<const char *>(given.segments);
    for (uint32_t i = 0; i < given.segment_count; i++) {
        const auto *next = reinterpret_cast<const dtrain_segment_t *>(from);
        if (Status s = dtrain::api::take(segments[i], next); s != DTRAIN_OK) return s;
        if (next->struct_size != given.segments->struct_size)
            return fail(DTRAIN_ERR_INVALID, "segment %u: its struct_size is not that of the first",
                        i);
        from += next->struct_size;
    }
    given.segments = segments;
    return DTRAIN_OK;
}

Status create(dtrain_comm *comm, const char *name, const dtrain_table_params_t &given,
              dtrain_table **table_p) {
    dtrain::ps::TableParams params;
    if (Status s = dtrain::ps::resolve(given, name, params); s != DTRAIN_OK) return s;
    const uint32_t unfit = first_unfit_field(params, uint32_t(comm->communicator->size()));
    if (unfit != dtrain::ps::field_count)
        return fail(DTRAIN_ERR_INVALID, "table_create '%s': %s", name,
                    dtrain::ps::invalid_text(unfit).c_str());
    auto fresh = std::make_unique<dtrain_table>(comm->context);
    if (Status s = node_of(comm, fresh->node); s != DTRAIN_OK) return s;
    if (Status s = dtrain::api::complete_placement(given, name, *fresh->node, params);
        s != DTRAIN_OK)
        return s;
    const int64_t deadline_ns = comm->communicator->deadline(0);
    dtrain::cluster::CallRecord record;
    record.kind = dtrain::cluster::CallKind::table_create;
    record.count = is_sparse(params) ? params.dim : params.length;
    record.dtype = uint8_t(params.dtype);
    if (Status s = comm->communicator->note_call(record); s != DTRAIN_OK) return s;
    if (Status s = dtrain::api::agree_on_home(comm, *fresh->node, deadline_ns, params);
        s != DTRAIN_OK)
        return s;
    if (Status s = fresh->node->create_table(
            name, params, comm->communicator->timeout_until(deadline_ns), fresh->table);
        s != DTRAIN_OK)
        return s;
    fresh->states = state_arrays(fresh->table->params);
    if (comm->context->options.number("checkpoint.restore") != 0)
        if (Status s = restore_newest(comm, *fresh, deadline_ns); s != DTRAIN_OK) {
            const std::string text = dtrain::error_text();
            fresh->node->destroy_table(fresh->table, Session::goodbye_ns);
            dtrain::set_error_text(text.c_str());
            return s;
        }
    *table_p = fresh.release();
    return DTRAIN_OK;
}

Status check_range(const dtrain_table *table, const char *what, const char *items, Range range,
                   uint64_t length) {
    if (range.first > length || range.count > length - range.first)
        return fail(
            DTRAIN_ERR_INVALID,
            "%s of table \"%s\": %s %llu to %llu + %llu are not all in it, it has %llu", what,
            table->table->name.c_str(), items, static_cast<unsigned long long>(range.first),
            static_cast<unsigned long long>(range.first),
            static_cast<unsigned long long>(range.count), static_cast<unsigned long long>(length));
    return DTRAIN_OK;
}

Status check_dense(const dtrain_table *table, const char *what) {
    if (!is_sparse(table->table->params)) return DTRAIN_OK;
    return fail(DTRAIN_ERR_INVALID,
                "%s of table \"%s\": the table is sparse, which has rows of keys and no ranges",
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
        "%s of table \"%s\": elements %llu to %llu + %llu are not whole rows of %llu, which "
        "its rule needs",
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
    return dtrain::api::run_operation(
        table->context, params, request_p,
        [&](const dtrain::collectives::CallOptions &options) {
            if (options.scaling != nullptr) return dtrain::api::refuse_scaling(what);
            transfer.priority = options.priority;
            return table->node->post(std::move(transfer), options.request, options.timeout_ns,
                                     options.blocking, options.awaited);
        },
        true);
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
        return fail(DTRAIN_ERR_INVALID,
                    "%s of table \"%s\": numbers %llu to %llu + %llu are not whole rows of %llu",
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
        return fail(DTRAIN_ERR_INVALID,
                    "%s of table \"%s\": weight %g; pushes to floating-point tables that aggregate "
                    "by AVG under BSP or QUORUM have one, finite and greater than 0",
                    what, table->table->name.c_str(), given.weight);
    const bool pulls =
        transfer.kind == RequestKind::pull || transfer.kind == RequestKind::pull_rows;
    if (given.min_version != 0 && !pulls)
        return fail(DTRAIN_ERR_INVALID, "%s of table \"%s\": min_version is for pulls", what,
                    table->table->name.c_str());
    transfer.weight = given.weight;
    transfer.min_version = given.min_version;
    return DTRAIN_OK;
}

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
    return guard_new([&]() -> Status {
        dtrain_table_params_t given;
        if (Status s = dtrain::api::take(given, params); s != DTRAIN_OK) return s;
        dtrain_segment_t segments[DTRAIN_SEGMENTS];
        if (Status s = take_segments(given, segments); s != DTRAIN_OK) return s;
        return create(comm, name, given, table_p);
    });
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
        return fail(DTRAIN_ERR_INVALID, "set_rate of table \"%s\": %g is no learning rate of %s",
                    table->table->name.c_str(), rate, rule_title(its).c_str());
    dtrain::ps::Transfer transfer;
    transfer.kind = RequestKind::set_rate;
    transfer.argument = std::bit_cast<uint64_t>(rate);
    return post(table, "set_rate", transfer, params, request_p);
}

dtrain_status_t dtrain_table_describe_state(const dtrain_table_t *table, uint32_t index,
                                            const char **name_p, uint32_t *dtype_p,
                                            uint64_t *count_p) {
    if (name_p == nullptr || dtype_p == nullptr || count_p == nullptr)
        return fail(DTRAIN_ERR_INVALID, "name_p, dtype_p or count_p is NULL");
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
