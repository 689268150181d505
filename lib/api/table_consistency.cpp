// Implements dtrain_table_set_consistency(): all workers change a table's consistency together.
// SPDX-License-Identifier: Apache-2.0
#include "api/table.h"
#include "collectives/communicator/agreement.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

using dtrain::fail;
using dtrain::Status;
using dtrain::api::check_handle;
using dtrain::cluster::CallKind;
using dtrain::collectives::Agreement;
using dtrain::ps::RequestKind;
using dtrain::ps::TableParams;

namespace {

// The workers that make the change together.
struct Group {
    dtrain_comm *comm = nullptr;
    bool rest = false; // only the surviving workers, after some were lost
};

// Sends the request to all servers. made: number of servers that have made the change.
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

// The operation's parameters with one deadline for everything that the call waits for.
class Terms {
  public:
    Terms(const dtrain_op_params_t &given, const dtrain::cluster::Session &session)
        : terms_(given), session_(session), deadline_ns_(session.deadline(given.timeout_ns)) {}
    const dtrain_op_params_t *rest() {
        terms_.timeout_ns = session_.timeout_until(deadline_ns_);
        return &terms_;
    }
    int64_t deadline() const { return deadline_ns_; }
    // For messages that others need even after the deadline: allows at least Session::goodbye_ns.
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

// Checks whether the change is possible, as far as this worker and the servers can tell.
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
                    "set_consistency of table \"%s\": operations of this worker have not finished; "
                    "wait for them first",
                    name);
    return run(table, group, mode_bits(wanted) | dtrain::ps::mode_only_asks, terms.rest());
}

std::string_view mode_name(uint32_t consistency) {
    constexpr std::string_view names[] = {"?", "ASYNC", "BSP", "SSP", "QUORUM"};
    return names[consistency < std::size(names) ? consistency : 0];
}

Agreement statement(const dtrain_table &table, const TableParams &wanted, Status own) {
    Agreement agreement(CallKind::set_consistency);
    if (agreement.check(own).refused()) return agreement;
    agreement.add("table", table.table->name)
        .add("consistency", mode_name(wanted.consistency))
        .add("staleness", uint64_t(wanted.staleness))
        .add("quorum", uint64_t(wanted.quorum))
        .add("reproducible", uint64_t(wanted.reproducible));
    return agreement;
}

// Succeeds if all ranks want the same change and can make it. Then `highest` is the clock from
// which all continue.
Status agree(const Group &group, const Agreement &wanted, int64_t deadline_ns, uint64_t clock,
             uint64_t &highest) {
    dtrain::collectives::Communicator &comm = *group.comm->communicator;
    if (Status s = wanted.reach(comm, deadline_ns); s != DTRAIN_OK) return s;
    return comm.run_until({.kind = dtrain::collectives::Kind::allreduce,
                           .send = &clock,
                           .recv = &highest,
                           .count = 1,
                           .dtype = DTRAIN_U64,
                           .op = DTRAIN_MAX},
                          deadline_ns);
}

// own: DTRAIN_OK, or why this worker cannot take part (text in error_text()). It still meets the
// others, which would otherwise wait for it.
Status set_consistency(const Group &group, dtrain_table *table, const dtrain_table_params_t &given,
                       Status own, Terms &terms) {
    TableParams wanted = table->table->params;
    wanted.consistency = given.consistency != 0 ? given.consistency : uint32_t(DTRAIN_ASYNC);
    wanted.staleness = given.staleness;
    wanted.quorum = given.quorum;
    wanted.reproducible = given.reproducible;
    if (own == DTRAIN_OK) own = check(group, table, wanted, terms);
    Agreement agreement = statement(*table, wanted, own);
    const Status ended = dtrain_table_clock(table, terms.rest(), nullptr);
    // A lost worker never ends its clock, so this error is no reason to refuse after a loss.
    if (ended != DTRAIN_OK && !(group.rest && ended == DTRAIN_ERR_PEER)) agreement.check(ended);
    uint64_t before = 0, at = 0;
    table->node->agent().locked([&] {
        before = table->table->clock;
        ++table->table->changes;
    });
    if (Status s = agree(group, agreement, terms.deadline(), before, at); s != DTRAIN_OK) {
        const std::string why = dtrain::error_text();
        // Others may have learned that all agree, so the servers must not wait for this worker's
        // request.
        (void)run(table, group, mode_bits(wanted) | dtrain::ps::mode_refused, terms.goodbye());
        dtrain::set_error_text(why.c_str());
        return s;
    }
    table->node->agent().locked([&] { table->table->clock = at; });
    uint64_t made = 0;
    Status done = run(table, group, mode_bits(wanted), terms.rest(), &made);
    if (done == DTRAIN_ERR_PEER && made > 0) // the lost worker had agreed with some servers
        done =
            run(table, group, mode_bits(wanted) | dtrain::ps::mode_decided, terms.goodbye(), &made);
    const bool stays = done == DTRAIN_ERR_STATE || (done == DTRAIN_ERR_PEER && made == 0);
    // Adopts the change even if an answer is late: all agreed, so the servers make it, unless one
    // of them never got the request.
    table->node->agent().locked([&] {
        if (stays)
            table->table->clock = before;
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
    const bool own = comm->node == table->node && comm->communicator->is_world();
    if (!own && !has_all_that_are_left(*comm, *table))
        return fail(
            DTRAIN_ERR_INVALID,
            "table \"%s\" was made on another communicator, and this one does not contain all "
            "surviving workers (make one with dtrain_comm_shrink())",
            table->table->name.c_str());
    return dtrain::api::guard([&]() -> Status {
        dtrain_op_params_t options = {};
        dtrain_table_params_t given = {};
        Status taken = dtrain::api::take(options, op);
        if (taken != DTRAIN_OK) (void)dtrain::api::take<dtrain_op_params_t>(options, nullptr);
        if (std::exchange(options.cq, nullptr) != nullptr)
            taken = fail(DTRAIN_ERR_UNSUPPORTED,
                         "set_consistency blocks: it takes no completion queue (cq must be NULL)");
        if (taken == DTRAIN_OK)
            taken = params != nullptr ? dtrain::api::take(given, params)
                                      : fail(DTRAIN_ERR_INVALID, "params is NULL");
        Terms terms(options, table->node->session());
        return set_consistency({.comm = comm, .rest = !own}, table, given, taken, terms);
    });
}
