// The hub of a job's control connections: it knows which members have joined and live, and passes
// on events of groups.
// SPDX-License-Identifier: Apache-2.0
//
// A pure state machine. It gathers the members, sends the roster to all, then watches them: a
// member whose connection ends without a Leave, or that is silent for the heartbeat timeout, is
// lost for good (and is fenced if it comes back). A silent member is not reported until it is clear
// that this side was not the one that was cut off or did not run. Messages between members pass
// through here. After a takeover it first waits for the members to come (failover.h).
//
// A partition never leaves two halves of a job running, except in a job of two, where both go on
// alone.
#pragma once
#include "cluster/control/call_log.h"
#include "cluster/control/failover.h"
#include "cluster/control/group_votes.h"
#include "cluster/control/join_roster.h"
#include "cluster/control/membership.h"
#include "cluster/control/newcomers.h"
#include "cluster/control/pace.h"
#include "cluster/control/protocol.h"
#include "cluster/control/reform_votes.h"
#include "cluster/control/watch.h"

#include <map>
#include <optional>

namespace dtrain::cluster {

class Coordinator {
  public:
    // Of a new job. absence: of this process; it outlives the coordinator.
    Coordinator(const Settings &settings, Absence &absence, int64_t now);
    // Successor of state.coordinator, which is in state.gone. dead: the old coordinator's process
    // is known to have ended.
    Coordinator(const Settings &settings, Absence &absence, Membership state, bool dead,
                int64_t now);

    void accepted(const Accepted &event, int64_t now, Actions &actions);
    void received(Link link, const wire::Message &message, int64_t now, Actions &actions);
    void closed(const Closed &event, int64_t now, Actions &actions);
    void called(Link link, bool refused, int64_t now, Actions &actions); // answers a Dial
    void turned_away(const TurnedAway &event, int64_t now);
    void tick(int64_t now, Actions &actions);
    // Its own member leaves. moved: for the next generation.
    void leave(bool moved, Actions &actions);

    int64_t next_deadline() const;
    // Whether members may depose it if they hear nothing of it: not before the job has formed, and
    // not after the last of them has gone.
    bool counted() const { return phase_ == Phase::running && state_.alive_count() > 1; }
    bool calls(Link link) const { return calls_out_.contains(link); }

  private:
    struct Connection {
        int32_t member;
        std::string remote, local;
        bool seated = false; // the member was admitted on this connection
    };

    void handle(Link link, const wire::Message &message, int64_t now, Actions &actions);
    void lose(int32_t member, const std::string &why, bool silent, Actions &actions,
              Status status = DTRAIN_ERR_PEER);
    void remove(const wire::Gone &gone, Actions &actions);
    void tell_who_left(Actions &actions);
    void end(Status status, const std::string &why, Actions &actions);
    void refuse(Link link, Status status, const std::string &why, Actions &actions);
    void seat(Link link);
    void unseat(int32_t member);
    void show_out(int64_t now, Actions &actions);
    void to(int32_t member, wire::Message message, Actions &actions);
    void to_all(wire::Message message, Actions &actions);
    uint64_t new_uid();

    // coordinator_join.cpp: until the job runs
    void join(Link link, const wire::Join &join, int64_t now, Actions &actions);
    void refuse_joining(Link link, Status status, const std::string &why, bool hopeless,
                        int64_t now, Actions &actions);
    void tell_soon(int64_t now);
    void join_later(Link link, Actions &actions);
    void start(int64_t now, Actions &actions);
    void say_who_is_missing(int64_t now, Actions &actions);
    bool is_awaited() const;
    void beat_for_waiting(int64_t now, Actions &actions);
    void rejoin(Link link, const wire::Rejoin &rejoin, int64_t now, Actions &actions);
    void collect(int64_t now, Actions &actions);
    void resume(int64_t now, Actions &actions);

    // coordinator_elastic.cpp: newcomers, and the next generation
    void wait_to_come_in(Link link, const wire::Join &join, int64_t now, Actions &actions);
    void newcomer_gone(Link link, Actions &actions);
    void tell_newcomers(Actions &actions); // how many wait
    void tick_newcomers(int64_t now, Actions &actions);
    bool reform(int32_t member, const wire::ReformRequest &request, int64_t now, Actions &actions);
    void move(const ReformVotes::Answers &answers, Actions &actions);

    // coordinator_watch.cpp: health
    struct Doubt {
        int32_t member;
        int64_t when;
        bool deposed; // the member has another coordinator, or looks for one
        bool held;    // not lost yet
        std::string why;
    };
    void beat(Actions &actions); // to all members
    void watch(int64_t now, Actions &actions);
    void doubt(const Doubt &doubt, Actions &actions);
    std::string why_deposed(int64_t now) const;
    void take_back_doubt(int32_t member, int64_t now);
    void ended(int32_t member, int64_t now, Actions &actions);
    void give_way(size_t others, int64_t now, Actions &actions); // others: who may have gone on
    // ending: members that are about to be lost.
    void judge(int64_t now, Actions &actions, size_t ending = 0);
    int64_t next_judgement() const;
    int64_t hold() const { return 2 * pace_.interval; }

    // coordinator_groups.cpp: messages between members; they return false if it is malformed
    bool from_member(int32_t member, const wire::Message &message, int64_t now, Actions &actions);
    bool group_failed(int32_t member, const wire::GroupFailed &failed, Actions &actions);
    bool calls(int32_t member, const wire::Calls &report, Actions &actions);
    bool relay(int32_t member, const wire::Relay &relay, Actions &actions);
    bool new_group(int32_t member, const wire::GroupRequest &request, int64_t now,
                   Actions &actions);
    void tell_of_wait(int32_t member, uint64_t group, const std::vector<int32_t> &members,
                      const char *does, Actions &actions);
    bool in_group(int32_t member, const std::vector<int32_t> &members) const;
    void answer(const GroupVotes::Answers &answers, Actions &actions);

    const Settings &settings_;
    Absence &absence_;
    enum class Phase { joining, failing_over, running, over } phase_;
    std::string why_over_ = "the job is over";
    Membership state_;
    std::map<Link, Connection> links_;
    std::map<int32_t, Link> seats_; // by member
    // Connections without a seat, and until when each may stay; oldest first.
    std::map<Link, int64_t> lobby_;

    std::optional<JoinRoster> roster_;
    int64_t started_, next_line_, last_line_ = 0;
    std::optional<Failover> failover_;
    std::map<Link, int32_t> calls_out_; // members being called
    Link next_call_;

    // Members that left, until the others are told. Jobs mostly end with all members leaving at
    // once; then hardly any member remains to be told.
    std::vector<wire::Gone> left_;
    int64_t tell_at_ = INT64_MAX;

    Pace pace_;
    Watch watch_;
    std::vector<Doubt> doubts_; // members that may live, and may doubt this side likewise
    std::vector<int64_t> ends_; // when connections of members ended, lately
    CallLog call_log_;
    static constexpr size_t most_broken = 512;
    std::map<uint64_t, uint64_t> broken_; // groups whose members were told, and from which call on
    GroupVotes votes_;
    Newcomers newcomers_;
    int64_t beat_at_ = started_; // to those who join or wait to come in
    ReformVotes reforms_;
    bool door_awaits_ = false; // to be opened if the next generation has not formed
    uint64_t uids_made_ = 0;
};

} // namespace dtrain::cluster
