// Implements dtrain_table_create(): either every worker creates the table with the same parameters,
// or none does.
// SPDX-License-Identifier: Apache-2.0
#include "api/table.h"
#include "collectives/communicator/agreement.h"
#include "device/kernels.h"
#include "ps/table/table_fields.h"

using dtrain::fail;
using dtrain::Status;
using dtrain::api::check_handle;
using dtrain::api::guard_new;
using dtrain::cluster::CallKind;
using dtrain::cluster::Session;
using dtrain::collectives::Agreement;
using dtrain::ps::TableParams;

namespace {

int64_t later(int64_t deadline_ns, int64_t by_ns) {
    return deadline_ns == INT64_MAX ? INT64_MAX : deadline_ns + by_ns;
}

// Returns the node of the communicator's session. The first table creates it.
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

// Collective: rank 0 makes the servers restore the table, and all ranks learn the outcome.
Status restore_newest(dtrain_comm *comm, dtrain_table &table, int64_t deadline_ns) {
    enum { status, step, lineage, serial, numbers };
    dtrain::collectives::Communicator &ranks = *comm->communicator;
    dtrain::ps::Checkpointer &checkpointer = table.node->checkpointer();
    uint64_t found = UINT64_MAX;
    dtrain::ps::Lineage::Point point;
    Status own = DTRAIN_OK;
    if (ranks.rank() == 0)
        own = checkpointer.restore({&table.table, 1}, deadline_ns, found, &point);
    int64_t outcome[numbers] = {own, int64_t(found), int64_t(point.lineage), int64_t(point.serial)};
    Agreement restored(CallKind::table_create);
    if (own != DTRAIN_ERR_NOT_FOUND) restored.check(own);
    // If rank 0 gives up, it first tells the servers to drop the restore; the others wait that much
    // longer.
    const int64_t told_by = later(deadline_ns, 2 * Session::goodbye_ns);
    if (Status s = restored.reach(ranks, told_by); s != DTRAIN_OK)
        return dtrain::fail_within(s, "table_create: table \"%s\" cannot be restored",
                                   table.table->name.c_str());
    if (Status s = ranks.run_until({.kind = dtrain::collectives::Kind::broadcast,
                                    .recv = outcome,
                                    .count = numbers,
                                    .dtype = DTRAIN_I64,
                                    .root = 0},
                                   told_by);
        s != DTRAIN_OK || outcome[status] != DTRAIN_OK)
        return s;
    table.restored = uint64_t(outcome[step]);
    checkpointer.take({.lineage = uint64_t(outcome[lineage]),
                       .serial = uint64_t(outcome[serial]),
                       .step = *table.restored},
                      *table.table);
    return DTRAIN_OK;
}

// Copies the caller's segments. Their structs may be shorter or longer than this library's.
Status take_segments(dtrain_table_params_t &given, dtrain_segment_t *segments) {
    if (given.reserved != 0)
        return fail(DTRAIN_ERR_INVALID, "table_create: params.reserved is not 0");
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
    return dtrain::api::complete_placement(given, name, *node, params);
}

template <class Numbers> std::string listed(const Numbers &numbers) {
    std::string text;
    for (const auto number : numbers) text += (text.empty() ? "" : " ") + std::to_string(number);
    return text;
}

void state(const dtrain::ps::Segment &segment, const std::string &which, Agreement &agreement) {
    agreement.add(which + "first", segment.first)
        .add(which + "count", segment.count)
        .add(which + "rule", dtrain::ps::rule_info(uint32_t(segment.rule)).name);
    for (const dtrain::ps::SegmentField &field : dtrain::ps::fields_of_segment)
        agreement.add(which + field.name, segment.*field.own);
}

// Lists the parameters in the order in which a reader would look for a difference.
void state(const TableParams &params, const char *name, Agreement &agreement) {
    agreement.add("name", name)
        .add("rule", dtrain::ps::rule_info(params.rule).name)
        .add("dtype", dtrain::device::dtype_name(params.dtype))
        .add("function", params.function);
    for (const dtrain::ps::Field &field : dtrain::ps::fields_of_table)
        if (field.wide != nullptr)
            agreement.add(field.name, params.*field.wide);
        else if (field.number != nullptr)
            agreement.add(field.name, uint64_t(params.*field.number));
        else
            agreement.add(field.name, params.*field.real);
    agreement.add("segments", uint64_t(params.segments.size()));
    for (size_t i = 0; i < params.segments.size(); i++)
        state(params.segments[i], "segment " + std::to_string(i) + " ", agreement);
    const dtrain::ps::Placement &placement = params.placement;
    agreement.add("placement", uint64_t(placement.policy))
        .add("placement virtual_nodes", uint64_t(placement.virtual_nodes))
        .add("placement_block", placement.block)
        .add("key_count", placement.key_count)
        .add("split_bytes", placement.split_bytes)
        .add("placement weights", listed(placement.weights))
        .add("placement of blocks", listed(placement.owners));
}

Status create(dtrain_comm *comm, const char *name, const dtrain_table_params_t *from,
              dtrain_table **table_p) {
    const int64_t deadline_ns = comm->communicator->deadline(0);
    auto fresh = std::make_unique<dtrain_table>(comm->context);
    dtrain_table_params_t given = {};
    dtrain_segment_t segments[DTRAIN_SEGMENTS];
    TableParams params;
    Status own = name == nullptr || from == nullptr || table_p == nullptr
                     ? fail(DTRAIN_ERR_INVALID, "table_create: %s is NULL",
                            name == nullptr   ? "name"
                            : from == nullptr ? "params"
                                              : "table_p")
                     : dtrain::api::take(given, from);
    if (own == DTRAIN_OK) own = take_segments(given, segments);
    if (own == DTRAIN_OK) own = resolve(comm, name, given, fresh->node, params);
    Agreement wanted(CallKind::table_create);
    if (!wanted.check(own).refused()) state(params, name, wanted);
    if (Status s = wanted.reach(*comm->communicator, deadline_ns); s != DTRAIN_OK) return s;
    if (Status s = dtrain::api::agree_on_home(comm, *fresh->node, deadline_ns, params);
        s != DTRAIN_OK)
        return s;
    Agreement made(CallKind::table_create);
    made.check(fresh->node->create_table(
        name, params, comm->communicator->timeout_until(deadline_ns), fresh->table));
    // The extra time lets a rank whose own deadline has passed still tell the others.
    Status s = made.reach(*comm->communicator, later(deadline_ns, Session::goodbye_ns));
    if (s == DTRAIN_OK && comm->context->options.number("checkpoint.restore") != 0)
        s = restore_newest(comm, *fresh, deadline_ns);
    if (s != DTRAIN_OK) {
        const std::string text = dtrain::error_text();
        if (fresh->table != nullptr) fresh->node->destroy_table(fresh->table, Session::goodbye_ns);
        dtrain::set_error_text(text.c_str());
        return s;
    }
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
