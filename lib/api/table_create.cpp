// Implements dtrain_table_create().
// SPDX-License-Identifier: Apache-2.0
#include "api/table.h"
#include "ps/table/table_fields.h"
#include "tables/placement.h"

using dtrain::fail;
using dtrain::Status;
using dtrain::api::check_handle;
using dtrain::api::guard_new;
using dtrain::ps::TableParams;

namespace {

// Returns the node of the communicator's session. The first table creates it.
Status node_of(dtrain_comm *comm, std::shared_ptr<dtrain::ps::Node> &out) {
    dtrain_context &context = *comm->context;
    std::lock_guard lock(context.session_mutex);
    out = comm->node;
    if (out != nullptr) return DTRAIN_OK;
    if (Status s = dtrain::ps::Node::open(comm->communicator->shared_session(),
                                          {context.functions, context.domains},
                                          std::move(comm->legacy), out);
        s != DTRAIN_OK)
        return s;
    comm->node = out;
    return DTRAIN_OK;
}

// Copies the caller's segments. Their structs may be shorter or longer than this library's.
Status take_segments(dtrain_table_params_t &given, dtrain_segment_t *segments) {
    if (given.reserved != 0 || given.reserved2 != 0)
        return fail(DTRAIN_ERR_INVALID, "table_create: params.%s is not 0",
                    given.reserved != 0 ? "reserved" : "reserved2");
    if (given.segment_count > DTRAIN_SEGMENTS)
        return fail(DTRAIN_ERR_INVALID, "table_create: segment_count is %u, at most %d are allowed",
                    given.segment_count, DTRAIN_SEGMENTS);
    if ((given.segments == nullptr) != (given.segment_count == 0))
        return fail(DTRAIN_ERR_INVALID, "table_create: segment_count is %u, but segments is %s",
                    given.segment_count, given.segments == nullptr ? "NULL" : "not NULL");
    const auto *from = reinterpret_cast<const char *>(given.segments);
    for (uint32_t i = 0; i < given.segment_count; i++) {
        const auto *next = reinterpret_cast<const dtrain_segment_t *>(from);
        if (Status s = dtrain::api::take(segments[i], next); s != DTRAIN_OK) return s;
        if (next->struct_size != given.segments->struct_size)
            return fail(
                DTRAIN_ERR_INVALID,
                "table_create: segment %u: its struct_size differs from the first segment's", i);
        from += next->struct_size;
    }
    given.segments = segments;
    return DTRAIN_OK;
}

// Fills in the defaults and checks the parameters, as far as this worker can.
Status resolve(dtrain_comm *comm, const char *name, const dtrain_table_params_t &given,
               std::shared_ptr<dtrain::ps::Node> &node, TableParams &params) {
    if (Status s = dtrain::ps::resolve(given, name, params); s != DTRAIN_OK) return s;
    const uint32_t unfit = first_unfit_field(params, uint32_t(comm->communicator->size()));
    if (unfit != dtrain::ps::field_count)
        return fail(DTRAIN_ERR_INVALID, "table_create \"%s\": %s", name,
                    dtrain::ps::invalid_text(unfit).c_str());
    if (Status s = node_of(comm, node); s != DTRAIN_OK) return s;
    return dtrain::tables::complete_placement(given, name, *node, params);
}

Status create(dtrain_comm *comm, const char *name, const dtrain_table_params_t *from,
              dtrain_table **table_p) {
    auto fresh = std::make_unique<dtrain_table>(comm->context);
    dtrain_table_params_t given = {};
    dtrain_segment_t segments[DTRAIN_SEGMENTS];
    dtrain::tables::Wish wish;
    const bool complete = name != nullptr && from != nullptr && table_p != nullptr;
    Status own = complete ? dtrain::api::take(given, from)
                          : fail(DTRAIN_ERR_INVALID, "table_create: %s is NULL",
                                 name == nullptr   ? "name"
                                 : from == nullptr ? "params"
                                                   : "table_p");
    if (complete && own == DTRAIN_OK) own = take_segments(given, segments);
    if (complete && own == DTRAIN_OK) own = resolve(comm, name, given, fresh->node, wish.params);
    wish.own = own;
    wish.name = name;
    wish.restores = comm->context->options.number("checkpoint.restore") != 0;
    const Status s = dtrain::tables::create(*comm->communicator, wish, *fresh);
    if (s != DTRAIN_OK || !complete) return s;
    fresh->states = state_arrays(fresh->table->params);
    *table_p = fresh.release();
    return DTRAIN_OK;
}

} // namespace

dtrain_status_t dtrain_table_create(dtrain_comm_t *comm, const char *name,
                                    const dtrain_table_params_t *params, dtrain_table_t **table_p) {
    if (Status s = check_handle(comm, "comm"); s != DTRAIN_OK) return s;
    if (!comm->communicator->is_world())
        return fail(DTRAIN_ERR_INVALID,
                    "table \"%.64s\": tables are created on the communicator of "
                    "dtrain_comm_create(), not on a split, duplicated or shrunk one",
                    name != nullptr ? name : "");
    return guard_new([&] { return create(comm, name, params, table_p); });
}
