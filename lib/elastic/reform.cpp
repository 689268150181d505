// Forms the next generation: one vote, a new job at the place that it has named, and its door.
// SPDX-License-Identifier: Apache-2.0
#include "elastic/reform.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace dtrain::elastic {

using cluster::NextJob;
using cluster::Session;
using collectives::Communicator;

namespace {

// So many generations may form and then lose somebody before their communicator is made.
constexpr int most_generations = 8;

Status join(Session &old, engine::Helper &helper, const NextJob &next, int64_t deadline_ns,
            std::shared_ptr<Session> &out) {
    cluster::SessionParams params;
    params.identity = next.identity;
    params.listener = next.listener;
    params.deadline_ns = std::min(deadline_ns, old.agent().clock().now_ns() +
                                                   Session::forming_patience(old.options()));
    params.transports = cluster::transport_addresses(old.agent());
    Status s = Session::join(old.agent(), helper, old.options(), params, out);
    if (s == DTRAIN_OK) out->succeed(old);
    return s;
}

// A failure of all members: one was lost, came too late, or does not fit. This process's own lack
// of something does not pass.
bool may_pass(Status s) { return s != DTRAIN_ERR_NO_MEMORY && s != DTRAIN_ERR_LIMIT; }

// The steps of one reform, again and again until a generation has its communicator. Once one has
// formed there is no way back, since other members may be in it: the next is made of that one.
class Reform {
  public:
    Reform(Communicator &old, ps::Node *node, engine::Helper &helper, const Wish &wish)
        : session_(old.shared_session()), group_(old.uid()), members_(old.ranks().ids), node_(node),
          helper_(helper), wish_(wish), deadline_ns_(old.deadline(wish.timeout_ns)) {}

    Status run(Generation &out) {
        for (int formed = 0;;) {
            NextJob next;
            if (Status s = agree(next); s != DTRAIN_OK) return s;
            if (formed > 0) cluster::add_changes(out.changes, next);
            out.changes = std::move(next);
            Fd door = session_->job().release_door();
            if (!out.changes.stays) return DTRAIN_OK;
            if (Status s = take_legacy(out.legacy); s != DTRAIN_OK) return s;
            Status s = join(*session_, helper_, out.changes, deadline_ns_, out.session);
            if (s != DTRAIN_OK) { // newcomers still find the old generation
                if (door) session_->job().open_door(std::move(door));
                if (!may_pass(s) || is_late()) return fail_within(s, "reform");
                continue;
            }
            formed++;
            if (out.changes.identity.member() == 0) out.session->job().open_door(std::move(door));
            s = Communicator::make_world(out.session, out.session->timeout_until(deadline_ns_),
                                         out.world);
            if (s == DTRAIN_OK) return s;
            if (!may_pass(s) || is_late() || formed == most_generations)
                return fail_within(s, "reform");
            go_on_from(std::move(out.session));
        }
    }

  private:
    Status agree(NextJob &next) {
        cluster::ReformWish asks;
        asks.smallest = wish_.smallest;
        asks.largest = wish_.largest;
        asks.leaves = wish_.leaves;
        asks.timeout_ns = session_->timeout_until(deadline_ns_);
        return session_->job().reform(group_, members_, asks, next);
    }
    // Only once all have agreed, each time: until the last worker has called, it may have pushed to
    // what this process serves.
    Status take_legacy(ps::Legacy &out) {
        return node_ != nullptr ? node_->legacy(out) : DTRAIN_OK;
    }
    bool is_late() const { return session_->agent().clock().now_ns() >= deadline_ns_; }
    void go_on_from(std::shared_ptr<Session> session) {
        node_ = nullptr;
        session_ = std::move(session);
        group_ = Communicator::world_uid;
        members_.resize(session_->workers());
        std::iota(members_.begin(), members_.end(), 0);
    }

    std::shared_ptr<Session> session_;
    uint64_t group_;
    std::vector<int32_t> members_;
    ps::Node *node_; // nullptr once a generation has formed
    engine::Helper &helper_;
    const Wish &wish_;
    const int64_t deadline_ns_;
};

} // namespace

Status follow(ps::Node &old, engine::Helper &helper, const NextJob &next, Generation &out) {
    // First: once this server has joined, the generation may form, and its workers destroy their
    // old tables.
    if (Status s = old.legacy(out.legacy); s != DTRAIN_OK) return s;
    return join(old.session(), helper, next, INT64_MAX, out.session);
}

Status reform(Communicator &old, ps::Node *node, engine::Helper &helper, const Wish &wish,
              Generation &out) {
    if (!old.session().identity().elastic)
        return fail(
            DTRAIN_ERR_STATE,
            "reform: the job is not elastic: set option elastic=yes (DTRAIN_ELASTIC=yes) for "
            "all of its processes, and give it a rendezvous");
    // Nobody waits any longer for a rank that is gone.
    if (old.is_broken()) old.faults().shrink();
    if (node != nullptr)
        if (Status s = node->check_at_rest(); s != DTRAIN_OK) return s;
    return Reform(old, node, helper, wish).run(out);
}

} // namespace dtrain::elastic
