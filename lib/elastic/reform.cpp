// Forms the next generation: one vote, a new job at the place that it has named, and its door.
// SPDX-License-Identifier: Apache-2.0
#include "elastic/reform.h"

namespace dtrain::elastic {

using cluster::NextJob;
using cluster::Session;
using collectives::Communicator;

namespace {

Status join(Session &old, engine::Helper &helper, const NextJob &next, int64_t deadline_ns,
            std::shared_ptr<Session> &out) {
    cluster::SessionParams params;
    params.identity = next.identity;
    params.listener = next.listener;
    params.deadline_ns = deadline_ns;
    params.transports = cluster::transport_addresses(old.agent());
    return Session::join(old.agent(), helper, old.options(), params, out);
}

// Whether no operation of this worker on a table is in flight.
bool is_idle(ps::Node &node) {
    bool idle = false;
    node.agent().locked([&] { idle = node.client().idle(); });
    return idle;
}

} // namespace

Status follow(ps::Node &old, engine::Helper &helper, const NextJob &next, Generation &out) {
    if (Status s = old.legacy(out.legacy); s != DTRAIN_OK) return s;
    return join(old.session(), helper, next, cluster::join_deadline(old.session().options(), 0),
                out.session);
}

Status reform(Communicator &old, ps::Node *node, engine::Helper &helper, const Wish &wish,
              Generation &out) {
    Session &session = old.session();
    if (!session.identity().elastic)
        return fail(
            DTRAIN_ERR_STATE,
            "reform: the job is not elastic: set option elastic=yes (DTRAIN_ELASTIC=yes) for "
            "all of its processes, and give it a rendezvous");
    const int64_t deadline_ns = old.deadline(wish.timeout_ns);
    // Nobody waits any longer for a rank that is gone.
    if (old.is_broken()) old.faults().shrink();
    cluster::ReformWish asks;
    asks.smallest = wish.smallest;
    asks.largest = wish.largest;
    asks.leaves = wish.leaves;
    asks.timeout_ns = old.timeout_until(deadline_ns);
    if (node != nullptr && !is_idle(*node))
        return fail(DTRAIN_ERR_BUSY,
                    "reform: operations on tables are in flight; wait for them first");
    NextJob &next = out.changes;
    if (Status s = session.job().reform(old.uid(), old.ranks().ids, asks, next); s != DTRAIN_OK)
        return s;
    Fd door = session.job().release_door();
    if (!next.stays) return DTRAIN_OK;
    // Only now: until the last worker has called, it may have pushed to what this process serves.
    Status s = node != nullptr ? node->legacy(out.legacy) : DTRAIN_OK;
    if (s == DTRAIN_OK) s = join(session, helper, next, deadline_ns, out.session);
    if (s == DTRAIN_OK)
        s = Communicator::make_world(out.session, out.session->timeout_until(deadline_ns),
                                     out.world);
    if (s != DTRAIN_OK) { // the door is still the old generation's
        if (door) session.job().open_door(std::move(door));
        return fail_within(s, "reform");
    }
    if (next.identity.member() == 0) out.session->job().open_door(std::move(door));
    return DTRAIN_OK;
}

} // namespace dtrain::elastic
