// Creation: the workers compare what they want, create the table, and restore it if asked to.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/communicator/agreement.h"
#include "ps/node/checkpointer.h"
#include "tables/resettlement.h"
#include "tables/shared_table.h"
#include "tables/statement.h"

namespace dtrain::tables {

using cluster::CallKind;
using cluster::Session;
using collectives::Agreement;
using collectives::Communicator;
using collectives::Kind;

namespace {

int64_t later(int64_t deadline_ns, int64_t by_ns) {
    return deadline_ns == INT64_MAX ? INT64_MAX : deadline_ns + by_ns;
}

// The ranks agree on the server of a table that lies on one server. Workers destroy tables at
// different times, so their views of how full the servers are differ: rank 0 alone chooses. It
// broadcasts for every table, so that all ranks make the same calls.
Status agree_on_home(Communicator &comm, ps::Node &node, int64_t deadline_ns,
                     ps::TableParams &params) {
    uint32_t home = 0;
    const bool asked = on_one_server(params.placement);
    if (asked && comm.rank() == 0) home = node.choose_home(params);
    const Status s = comm.run_until(
        {.kind = Kind::broadcast, .recv = &home, .count = 1, .dtype = DTRAIN_U32, .root = 0},
        deadline_ns);
    if (s == DTRAIN_OK && asked) params.placement.home = home;
    return s;
}

// A table that was there in the job's last generation lies where it lay then, unless it moves. Rank
// 0 knows, since it was there; newcomers do not. servers: on how many the table lay; 0: it was not
// there.
Status agree_on_inheritance(Communicator &comm, const ps::Node &node, const std::string &name,
                            int64_t deadline_ns, ps::TableParams &params, uint32_t &servers) {
    if (comm.session().identity().generation == 0) return DTRAIN_OK;
    const ps::Placement *known = comm.rank() == 0 ? node.inherited(name) : nullptr;
    enum { is_known, among, home, weights, numbers };
    uint32_t told[numbers] = {};
    if (known != nullptr) {
        told[is_known] = 1;
        told[among] = known->among;
        told[home] = known->home;
        told[weights] = uint32_t(known->weights.size());
    }
    auto pass_on = [&](void *data, size_t count) {
        return comm.run_until(
            {.kind = Kind::broadcast, .recv = data, .count = count, .dtype = DTRAIN_U32, .root = 0},
            deadline_ns);
    };
    if (Status s = pass_on(told, numbers); s != DTRAIN_OK) return s;
    if (told[is_known] == 0) return DTRAIN_OK;
    servers = told[among];
    if (servers > node.servers().size()) return DTRAIN_OK;
    params.placement.among = told[among];
    params.placement.home = told[home];
    params.placement.weights.assign(told[weights], 0);
    if (told[weights] == 0) return DTRAIN_OK;
    if (known != nullptr) params.placement.weights = known->weights;
    return pass_on(params.placement.weights.data(), told[weights]);
}

// On how many of its servers the table has the values that it had before; servers: on how many it
// lies.
uint32_t count_inherited(const ps::ClientTable &table, uint32_t &servers) {
    uint32_t count = 0;
    servers = table.params.placement.servers_of(uint32_t(table.channels.size()));
    for (uint32_t s = 0; s < servers; s++) count += table.channels[s]->inherited();
    return count;
}

// Rank 0 makes the servers restore the table, and all ranks learn the outcome.
Status restore_newest(Communicator &comm, SharedTable &table, int64_t deadline_ns) {
    enum { status, step, lineage, serial, numbers };
    ps::Checkpointer &checkpointer = table.node->checkpointer();
    uint64_t found = UINT64_MAX;
    ps::Lineage::Point point;
    Status own = DTRAIN_OK;
    if (comm.rank() == 0) own = checkpointer.restore({&table.table, 1}, deadline_ns, found, &point);
    int64_t outcome[numbers] = {own, int64_t(found), int64_t(point.lineage), int64_t(point.serial)};
    Agreement restored(CallKind::table_create);
    if (own != DTRAIN_ERR_NOT_FOUND) restored.check(own);
    // If rank 0 gives up, it first tells the servers to drop the restore; the others wait that much
    // longer.
    const int64_t told_by = later(deadline_ns, 2 * Session::goodbye_ns);
    if (Status s = restored.reach(comm, told_by); s != DTRAIN_OK)
        return fail_within(s, "table_create: table \"%s\" cannot be restored",
                           table.table->name.c_str());
    if (Status s = comm.run_until({.kind = Kind::broadcast,
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

} // namespace

Status create(Communicator &comm, const Wish &wish, SharedTable &out) {
    const int64_t deadline_ns = comm.deadline(0);
    Agreement wanted(CallKind::table_create);
    if (!wanted.check(wish.own).refused()) state(wish.params, wish.name, wanted);
    if (Status s = wanted.reach(comm, deadline_ns); s != DTRAIN_OK) return s;
    ps::TableParams params = wish.params;
    uint32_t lay_on = 0;
    if (Status s = agree_on_inheritance(comm, *out.node, wish.name, deadline_ns, params, lay_on);
        s != DTRAIN_OK)
        return s;
    bool inherited = lay_on > 0;
    Resettlement move(comm, *out.node, wish.name);
    if (inherited)
        if (Status s = move.agree(wish.params, lay_on, deadline_ns); s != DTRAIN_OK) return s;
    if (move.needed()) params.placement = wish.params.placement;
    if (params.placement.among == 0)
        if (Status s = agree_on_home(comm, *out.node, deadline_ns, params); s != DTRAIN_OK)
            return s;
    move.take();
    Agreement made(CallKind::table_create);
    made.check(
        out.node->create_table(wish.name, params, comm.timeout_until(deadline_ns), out.table));
    // The extra time lets a rank whose own deadline has passed still tell the others.
    Status s = made.reach(comm, later(deadline_ns, Session::goodbye_ns));
    bool whole = false;
    if (s == DTRAIN_OK && move.needed()) {
        s = move.settle(out, deadline_ns);
        whole = s == DTRAIN_OK;
    } else if (s == DTRAIN_OK) {
        uint32_t servers = 0;
        const uint32_t found = count_inherited(*out.table, servers);
        whole = found == servers;
        inherited |= found > 0; // servers know of it, although all workers that did are gone
    }
    if (s == DTRAIN_OK && wish.restores && !whole) s = restore_newest(comm, out, deadline_ns);
    if (s == DTRAIN_OK && inherited && !whole && !out.restored)
        s = fail(
            DTRAIN_ERR_PEER,
            "table_create: table \"%s\" was there before the reform, but not all of its values "
            "are: a server that had a part of it was lost, or its parameters are others now; "
            "restore it from a checkpoint (checkpoint.restore=yes), or create it under another "
            "name",
            wish.name);
    if (s == DTRAIN_OK || out.table == nullptr) return s;
    const std::string text = error_text();
    out.node->destroy_table(std::exchange(out.table, nullptr), Session::goodbye_ns, true);
    set_error_text(text.c_str());
    return s;
}

} // namespace dtrain::tables
