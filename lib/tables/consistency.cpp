// A change of consistency: the workers agree, and then ask the servers.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/communicator/agreement.h"
#include "ps/table/table_fields.h"
#include "tables/run.h"
#include "tables/shared_table.h"

#include <algorithm>

namespace dtrain::tables {

using cluster::CallKind;
using collectives::Agreement;
using ps::RequestKind;
using ps::TableParams;

namespace {

// One deadline for everything that the call waits for.
class Deadline {
  public:
    Deadline(const cluster::Session &session, int64_t timeout_ns)
        : session_(session), at_ns_(session.deadline(timeout_ns)) {}
    int64_t at() const { return at_ns_; }
    int64_t rest() const { return session_.timeout_until(at_ns_); }
    // For messages that others need even after the deadline: allows at least Session::goodbye_ns.
    int64_t goodbye() const {
        return rest() < 0 ? rest() : std::max<int64_t>(rest(), session_.goodbye_ns);
    }

  private:
    const cluster::Session &session_;
    const int64_t at_ns_;
};

// Asks all servers. made: the number of servers that have made the change.
Status ask(const Changers &changers, const SharedTable &table, uint64_t argument,
           int64_t timeout_ns, uint64_t *made = nullptr) {
    ps::Transfer transfer;
    transfer.kind = RequestKind::set_mode;
    transfer.flags = changers.rest ? ps::without_lost : 0;
    transfer.argument = argument;
    transfer.total_p = made;
    return run(table, std::move(transfer), timeout_ns);
}

Status end_clock(const SharedTable &table, int64_t timeout_ns) {
    ps::Transfer transfer;
    transfer.kind = RequestKind::clock;
    return run(table, std::move(transfer), timeout_ns);
}

// Checks whether the change is possible, as far as this worker and the servers can tell.
Status check(const Changers &changers, const SharedTable &table, const TableParams &wanted,
             const Deadline &deadline) {
    const char *name = table.table->name.c_str();
    uint32_t bad = first_bad_field(wanted);
    if (bad == ps::field_count) bad = first_unfit_field(wanted, uint32_t(changers.comm.size()));
    if (bad != ps::field_count)
        return fail(DTRAIN_ERR_INVALID, "set_consistency of table \"%s\": %s", name,
                    ps::invalid_text(bad).c_str());
    bool busy = false;
    table.node->agent().locked([&] { busy = !table.table->transfers.empty(); });
    if (busy)
        return fail(DTRAIN_ERR_STATE,
                    "set_consistency of table \"%s\": operations of this worker have not finished; "
                    "wait for them first",
                    name);
    return ask(changers, table, mode_bits(wanted) | ps::mode_only_asks, deadline.rest());
}

Agreement statement(const SharedTable &table, const TableParams &wanted, Status own) {
    Agreement agreement(CallKind::set_consistency);
    if (agreement.check(own).refused()) return agreement;
    agreement.add("table", table.table->name)
        .add("consistency", ps::consistency_name(wanted.consistency))
        .add("staleness", uint64_t(wanted.staleness))
        .add("quorum", uint64_t(wanted.quorum))
        .add("reproducible", uint64_t(wanted.reproducible));
    return agreement;
}

// Succeeds if all ranks want the same change and can make it. Then `highest` is the clock from
// which all continue.
Status agree(collectives::Communicator &comm, const Agreement &wanted, int64_t deadline_ns,
             uint64_t clock, uint64_t &highest) {
    if (Status s = wanted.reach(comm, deadline_ns); s != DTRAIN_OK) return s;
    return comm.run_until({.kind = collectives::Kind::allreduce,
                           .send = &clock,
                           .recv = &highest,
                           .count = 1,
                           .dtype = DTRAIN_U64,
                           .op = DTRAIN_MAX},
                          deadline_ns);
}

} // namespace

bool has_all_survivors(const collectives::Communicator &comm, const SharedTable &table) {
    cluster::Session &session = table.node->session();
    if (comm.shared_session().get() != &session) return false;
    for (uint32_t worker = 0; worker < session.workers(); ++worker) {
        bool has = !session.alive(worker);
        for (int32_t rank = 0; rank < comm.size() && !has; ++rank)
            has = comm.member(uint32_t(rank)) == worker;
        if (!has) return false;
    }
    return true;
}

Status set_consistency(const Changers &changers, const SharedTable &table,
                       const dtrain_table_params_t &given, Status own, int64_t timeout_ns) {
    const Deadline deadline(table.node->session(), timeout_ns);
    ps::ClientTable &its = *table.table;
    engine::Agent &agent = table.node->agent();
    TableParams wanted = its.params;
    wanted.consistency = given.consistency != 0 ? given.consistency : uint32_t(DTRAIN_ASYNC);
    wanted.staleness = given.staleness;
    wanted.quorum = given.quorum;
    wanted.reproducible = given.reproducible;
    if (own == DTRAIN_OK) own = check(changers, table, wanted, deadline);
    Agreement agreement = statement(table, wanted, own);
    const Status ended = end_clock(table, deadline.rest());
    // A lost worker never ends its clock, so this error is no reason to refuse after a loss.
    if (ended != DTRAIN_OK && !(changers.rest && ended == DTRAIN_ERR_PEER)) agreement.check(ended);
    uint64_t before = 0, at = 0;
    agent.locked([&] {
        before = its.clock;
        ++its.changes;
    });
    if (Status s = agree(changers.comm, agreement, deadline.at(), before, at); s != DTRAIN_OK) {
        const std::string why = error_text();
        // Others may have learned that all agree, so the servers must not wait for this worker's
        // request.
        (void)ask(changers, table, mode_bits(wanted) | ps::mode_refused, deadline.goodbye());
        set_error_text(why.c_str());
        return s;
    }
    agent.locked([&] { its.clock = at; });
    uint64_t made = 0;
    Status done = ask(changers, table, mode_bits(wanted), deadline.rest(), &made);
    if (done == DTRAIN_ERR_PEER && made > 0) // the lost worker had agreed with some servers
        done =
            ask(changers, table, mode_bits(wanted) | ps::mode_decided, deadline.goodbye(), &made);
    const bool stays = done == DTRAIN_ERR_STATE || (done == DTRAIN_ERR_PEER && made == 0);
    // Adopts the change even if an answer is late: all agreed, so the servers make it, unless one
    // of them never got the request.
    agent.locked([&] {
        if (stays)
            its.clock = before;
        else
            its.meet(wanted, at);
    });
    return done;
}

} // namespace dtrain::tables
