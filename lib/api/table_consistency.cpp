// dtrain_table_set_consistency
// SPDX-License-Identifier: Apache-2.0
#include "api/table.h"

#include <algorithm>
#include <array>
#include <vector>

using dtrain::fail;
using dtrain::Status;
using dtrain::api::check_handle;
using dtrain::ps::RequestKind;
using dtrain::ps::TableParams;

namespace {

// What workers tell each other before any server changes anything.
enum : size_t { status, mode, table_id, clock_after, said };
using Said = std::array<uint64_t, said>;

// Whom the change is made by.
struct Group {
    dtrain_comm *comm = nullptr;
    bool rest = false; // all workers that are left, where some may be lost
};

// made: servers that have made the change.
Status run(dtrain_table *table, const Group &group, uint64_t argument, const dtrain_op_params_t *op,
           uint64_t *made = nullptr) {
    return dtrain::api::run_operation(
        table->context, op, nullptr, [&](const dtrain::collectives::CallOptions &options) {
            dtrain::ps::Transfer transfer;
            transfer.kind = RequestKind::set_mode;
            transfer.flags = group.rest ? dtrain::ps::without_lost : 0;
            transfer.table = table->table;
            transfer.argument = argument;
            transfer.total_p = made;
            return table->node->post(std::move(transfer), options.request, options.timeout_ns,
                                     true);
        });
}

// All that the call waits for has to be over by then.
class Terms {
  public:
    Terms(const dtrain_op_params_t &given, const dtrain::cluster::Session &session)
        : terms_(given), session_(session), deadline_ns_(session.deadline(given.timeout_ns)) {}
    const dtrain_op_params_t *rest() {
        terms_.timeout_ns = session_.timeout_until(deadline_ns_);
        return &terms_;
    }
    // For what others have to hear all the same.
    const dtrain_op_params_t *goodbye() {
        const int64_t rest_ns = session_.timeout_until(deadline_ns_);
        terms_.timeout_ns = rest_ns < 0 ? rest_ns : std::max<int64_t>(rest_ns, session_.goodbye_ns);
        return &terms_;
    }

  private:
    dtrain_op_params_t terms_;
    const dtrain::cluster::Session &session_;
    const int64_t deadline_ns_;
};

// Whether it could be done, as far as this worker and the servers know.
Status check(const Group &group, dtrain_table *table, const TableParams &wanted, Terms &terms) {
    const char *name = table->table->name.c_str();
    uint32_t bad = first_bad_field(wanted);
    if (bad == dtrain::ps::field_count)
        bad = first_unfit_field(wanted, uint32_t(group.comm->communicator->size()));
    if (bad != dtrain::ps::field_count)
        return fail(DTRAIN_ERR_INVALID, "set_consistency of table \"%s\": %s", name,
                    dtrain::ps::invalid_text(bad).c_str());
    bool busy = false;
    table->node->agent().locked([&] { busy = !table->table->transfers.empty(); });
    if (busy)
        return fail(DTRAIN_ERR_STATE,
                    "set_consistency of table \"%s\": operations of this worker have not finished",
                    name);
    return run(table, group, mode_bits(wanted) | dtrain::ps::mode_only_asks, terms.rest());
}

Status agree(dtrain_comm *comm, const dtrain_table *table, const Said &mine,
             const std::vector<Said> &all) {
    const char *name = table->table->name.c_str();
    for (size_t rank = 0; rank < all.size(); ++rank)
        if (all[rank][table_id] != mine[table_id] || all[rank][mode] != mine[mode])
            return fail(DTRAIN_ERR_MISMATCH,
                        "set_consistency of table \"%s\": rank %zu asks for another %s than rank "
                        "%d",
                        name, rank, all[rank][table_id] != mine[table_id] ? "table" : "mode",
                        comm->communicator->rank());
    for (size_t rank = 0; rank < all.size(); ++rank)
        if (all[rank][status] != 0)
            return fail(DTRAIN_ERR_STATE,
                        "set_consistency of table \"%s\": rank %zu could not, see its error (%s)",
                        name, rank, dtrain_status_name(-Status(all[rank][status])));
    return DTRAIN_OK;
}

Status set_consistency(const Group &group, dtrain_table *table, const dtrain_table_params_t &given,
                       Terms &terms) {
    dtrain_comm *const comm = group.comm;
    TableParams wanted = table->table->params;
    wanted.consistency = given.consistency != 0 ? given.consistency : uint32_t(DTRAIN_ASYNC);
    wanted.staleness = given.staleness;
    wanted.quorum = given.quorum;
    wanted.reproducible = given.reproducible;
    Status own = check(group, table, wanted, terms);
    std::string why = dtrain::error_text();
    const Status ended = dtrain_table_clock(table, terms.rest(), nullptr);
    // Nobody ends that of who is lost.
    const bool can_end = ended == DTRAIN_OK || (group.rest && ended == DTRAIN_ERR_PEER);
    if (own == DTRAIN_OK && !can_end) {
        own = ended;
        why = dtrain::error_text();
    }
    Said mine = {};
    mine[status] = uint64_t(-own);
    mine[mode] = mode_bits(wanted);
    mine[table_id] = table->table->id;
    table->node->agent().locked([&] {
        mine[clock_after] = table->table->clock;
        ++table->table->changes;
    });
    std::vector<Said> all(size_t(comm->communicator->size()));
    if (Status s = dtrain_allgather(comm, mine.data(), all.data(), said, DTRAIN_U64, terms.rest(),
                                    nullptr);
        s != DTRAIN_OK) {
        why = dtrain::error_text();
        // Others may have heard everybody: they must not wait for this worker.
        (void)run(table, group, mode_bits(wanted) | dtrain::ps::mode_refused, terms.goodbye());
        dtrain::set_error_text(why.c_str());
        return s;
    }
    if (own != DTRAIN_OK) {
        dtrain::set_error_text(why.c_str());
        return own;
    }
    if (Status s = agree(comm, table, mine, all); s != DTRAIN_OK) return s;
    auto earlier = [](const Said &a, const Said &b) { return a[clock_after] < b[clock_after]; };
    const uint64_t at = (*std::max_element(all.begin(), all.end(), earlier))[clock_after];
    table->node->agent().locked([&] { table->table->clock = at; });
    uint64_t made = 0;
    Status done = run(table, group, mode_bits(wanted), terms.rest(), &made);
    if (done == DTRAIN_ERR_PEER && made > 0) // who was lost has told some servers that it agrees
        done =
            run(table, group, mode_bits(wanted) | dtrain::ps::mode_decided, terms.goodbye(), &made);
    const bool stays = done == DTRAIN_ERR_STATE || (done == DTRAIN_ERR_PEER && made == 0);
    // Also if an answer is late: all have agreed, so the servers do it; unless one has not heard.
    table->node->agent().locked([&] {
        if (stays)
            table->table->clock = mine[clock_after];
        else
            table->table->meet(wanted, at);
    });
    return done;
}

bool has_all_that_are_left(const dtrain_comm &comm, const dtrain_table &table) {
    dtrain::cluster::Session &session = table.node->session();
    if (comm.communicator->shared_session().get() != &session) return false;
    for (uint32_t worker = 0; worker < session.workers(); ++worker) {
        bool has = !session.alive(worker);
        for (int32_t rank = 0; rank < comm.communicator->size() && !has; ++rank)
            has = comm.communicator->member(uint32_t(rank)) == worker;
        if (!has) return false;
    }
    return true;
}

} // namespace

dtrain_status_t dtrain_table_set_consistency(dtrain_comm_t *comm, dtrain_table_t *table,
                                             const dtrain_table_params_t *params,
                                             const dtrain_op_params_t *op) {
    if (Status s = check_handle(comm, "comm"); s != DTRAIN_OK) return s;
    if (Status s = check_handle(table, "table"); s != DTRAIN_OK) return s;
    if (params == nullptr) return fail(DTRAIN_ERR_INVALID, "params is NULL");
    const bool own = comm->node == table->node && comm->communicator->is_world();
    if (!own && !has_all_that_are_left(*comm, *table))
        return fail(DTRAIN_ERR_INVALID,
                    "table \"%s\" was made on another communicator, and this one does not have all "
                    "workers that are left (dtrain_comm_shrink)",
                    table->table->name.c_str());
    return dtrain::api::guard([&]() -> Status {
        dtrain_op_params_t options;
        if (Status s = dtrain::api::take(options, op); s != DTRAIN_OK) return s;
        if (options.cq != nullptr)
            return fail(DTRAIN_ERR_UNSUPPORTED, "set_consistency blocks: it takes no queue");
        dtrain_table_params_t given;
        if (Status s = dtrain::api::take(given, params); s != DTRAIN_OK) return s;
        Terms terms(options, table->node->session());
        return set_consistency({.comm = comm, .rest = !own}, table, given, terms);
    });
}
