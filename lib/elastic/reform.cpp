// Forms the next generation: one vote, a new job at the place that it has named, and its door.
// SPDX-License-Identifier: Apache-2.0
#include "elastic/reform.h"

#include "elastic/handover.h"
#include "engine/attendance.h"
#include "engine/job_slots.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace dtrain::elastic {

using cluster::NextJob;
using cluster::Session;
using collectives::Communicator;

namespace {

// So many generations may form and then lose somebody before their communicator is made. Each is a
// job that this context stays a member of (engine::max_jobs), as of the first and of one that
// forms.
constexpr int most_generations = 6;
static_assert(most_generations + 1 < int(engine::max_jobs));
// How long the job of before may take to notice that a process has ended.
constexpr int64_t notice_ns = 500 * ms;

Status join(Session &old, engine::Backgrounds &backgrounds, const NextJob &next,
            int64_t deadline_ns, std::shared_ptr<Session> &out) {
    cluster::SessionParams params;
    params.identity = next.identity;
    params.listener = next.listener;
    params.deadline_ns = std::min(deadline_ns, old.agent().clock().now_ns() +
                                                   Session::forming_patience(old.options()));
    params.transports = cluster::transport_addresses(old.agent());
    return Session::join(old.agent(), backgrounds, old.options(), params, out);
}

// A failure of all members: one was lost, came too late, or does not fit. This process's own lack
// of something does not pass.
bool may_pass(Status s) { return s != DTRAIN_ERR_NO_MEMORY && s != DTRAIN_ERR_LIMIT; }

// A job of which the next generation is to be made: the caller's, or one that has formed and then
// lost somebody before its communicator was made.
struct Stage {
    std::shared_ptr<Session> session;
    uint64_t group;
    std::vector<int32_t> members;
    NextJob made_by; // the agreement in the stage before
    NextJob changes; // since the first
};

// The steps of one reform, again and again until a generation has its communicator. Once one has
// formed, the next is made of it, since other members may be in it and nowhere else. There is a way
// back from it if a member that is lost in it lives in the stage before: that one has not joined
// it, so its communicator cannot be made, and all of its members come back.
class Reform {
  public:
    Reform(Communicator &old, const Tables &tables, engine::Backgrounds &backgrounds,
           const Wish &wish)
        : old_(old), tables_(tables), backgrounds_(backgrounds), wish_(wish),
          deadline_ns_(old.deadline(wish.timeout_ns)) {
        stages_.push_back({old.shared_session(), old.uid(), old.ranks().ids, {}, {}});
    }

    Status run(Generation &out) {
        for (int formed = 0;;) {
            NextJob next;
            const Status agreed = agree(next);
            if (!is_late() && one_has_not_joined()) {
                go_back();
                continue;
            }
            if (agreed != DTRAIN_OK) return agreed;
            const NextJob step = next;
            if (stages_.size() > 1) cluster::add_changes(stages_.back().changes, next);
            out.changes = std::move(next);
            Session &session = *stages_.back().session;
            Fd door = session.job().release_door();
            if (stages_.size() == 1)
                if (Status s = take_legacy(step, out.legacy); s != DTRAIN_OK) return s;
            if (!out.changes.stays) return DTRAIN_OK;
            Status s = join(session, backgrounds_, out.changes, deadline_ns_, out.session);
            if (s != DTRAIN_OK) { // newcomers still find the old generation
                if (door) session.job().open_door(std::move(door));
                if (!may_pass(s) || is_late()) return fail_within(s, "reform");
                continue;
            }
            formed++;
            if (out.changes.identity.member() == 0) out.session->job().open_door(std::move(door));
            s = Communicator::make_world(out.session, out.session->timeout_until(deadline_ns_),
                                         out.world);
            if (s == DTRAIN_OK) {
                move_on(*out.session);
                return s;
            }
            if (!may_pass(s) || is_late() || formed == most_generations)
                return fail_within(s, "reform");
            go_on_from(std::move(out.session), step, out.changes);
        }
    }

  private:
    Status agree(NextJob &next) {
        const Stage &now = stages_.back();
        cluster::ReformWish asks;
        asks.smallest = wish_.smallest;
        asks.largest = wish_.largest;
        asks.leaves = wish_.leaves;
        asks.timeout_ns = now.session->timeout_until(deadline_ns_);
        Status s;
        {
            const engine::Attendance attendance(now.session->agent());
            const Session::Reforming reforming(*now.session, now.group);
            s = now.session->job().reform(now.group, now.members, asks, next);
        }
        now.session->hear_of_ended_connections();
        return s;
    }
    // Only once all have agreed, each time: until the last worker has called, it may have pushed to
    // what this process serves.
    Status take_legacy(const NextJob &next, ps::Legacy &out) {
        if (tables_.node == nullptr)
            out = tables_.unopened;
        else if (Status s = tables_.node->legacy(out); s != DTRAIN_OK)
            return s;
        hand_over(old_, next, deadline_ns_, out, received_);
        for (const auto &[name, parts] : received_) {
            auto &all = out.handed[name];
            all.insert(all.end(), parts.begin(), parts.end());
        }
        return DTRAIN_OK;
    }
    int64_t now_ns() const { return stages_[0].session->agent().clock().now_ns(); }
    bool is_late() const { return now_ns() >= deadline_ns_; }

    // Once all have agreed, it is known whom this generation has lost. One that has died is lost in
    // the stage before as well, perhaps a moment later. Where that job is over for this process,
    // others may have gone back to it: then it ends with what that job says.
    bool one_has_not_joined() const {
        engine::Agent &agent = stages_[0].session->agent();
        const int64_t until = std::min(now_ns() + notice_ns, deadline_ns_);
        while (is_lost_here_only()) {
            if (now_ns() >= until) return true;
            // This thread may be the only one that hears of losses (progress=manual).
            agent.wait_until([&] { return !is_lost_here_only(); }, now_ns() + 5 * ms);
        }
        return false;
    }
    bool is_lost_here_only() const {
        if (stages_.size() < 2) return false;
        const Stage &now = stages_.back(), &before = stages_[stages_.size() - 2];
        std::vector<int32_t> members =
            now.made_by.workers; // by member: the one of the stage before
        members.insert(members.end(), now.made_by.servers.begin(), now.made_by.servers.end());
        for (uint32_t m = 0; m < members.size(); m++)
            if (members[m] >= 0 && !now.session->alive(m) &&
                (before.session->job().status() != DTRAIN_OK ||
                 before.session->alive(uint32_t(members[m]))))
                return true;
        return false;
    }
    void go_back() {
        Fd door = stages_.back().session->job().release_door();
        stages_.pop_back();
        if (door) stages_.back().session->job().open_door(std::move(door));
    }
    void go_on_from(std::shared_ptr<Session> session, const NextJob &step, const NextJob &changes) {
        std::vector<int32_t> members(session->workers());
        std::iota(members.begin(), members.end(), 0);
        stages_.push_back(
            {std::move(session), Communicator::world_uid, std::move(members), step, changes});
    }
    // From here on there is no way back: the members of the stages learn that when this one leaves.
    void move_on(Session &last) {
        for (size_t i = 1; i < stages_.size(); i++)
            stages_[i].session->succeed(*stages_[i - 1].session);
        last.succeed(*stages_.back().session);
    }

    Communicator &old_;
    const Tables &tables_;
    ps::Handed received_; // by workers that have left in an agreement of this reform
    std::vector<Stage> stages_;
    engine::Backgrounds &backgrounds_;
    const Wish &wish_;
    const int64_t deadline_ns_;
};

} // namespace

Status follow(ps::Node &old, engine::Backgrounds &backgrounds, const NextJob &next,
              Generation &out) {
    // First: once this server has joined, the generation may form, and its workers destroy their
    // old tables.
    if (Status s = old.legacy(out.legacy); s != DTRAIN_OK) return s;
    const Status s = join(old.session(), backgrounds, next, INT64_MAX, out.session);
    if (s == DTRAIN_OK) out.session->succeed(old.session());
    return s;
}

Status reform(Communicator &old, const Tables &tables, engine::Backgrounds &backgrounds,
              const Wish &wish, Generation &out) {
    if (!old.session().identity().elastic)
        return fail(
            DTRAIN_ERR_STATE,
            "reform: the job is not elastic: set option elastic=yes (DTRAIN_ELASTIC=yes) for "
            "all of its processes, and give it a rendezvous");
    // Nobody waits any longer for a rank that is gone.
    if (old.is_broken()) old.faults().shrink();
    if (tables.node != nullptr)
        if (Status s = tables.node->check_at_rest(); s != DTRAIN_OK) return s;
    return Reform(old, tables, backgrounds, wish).run(out);
}

} // namespace dtrain::elastic
