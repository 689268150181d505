// A member's side of the control protocol: joining, heartbeats, and finding a new coordinator.
// SPDX-License-Identifier: Apache-2.0
//
// A pure state machine. When the coordinator is lost or leaves, the member turns to the lowest
// member that is alive (perhaps itself). A candidate at whose address no process listens any more
// is gone; one that cannot be reached is passed over. All of this is bounded in time; a member that
// finds no coordinator is fenced.
#pragma once
#include "cluster/control/absence.h"
#include "cluster/control/membership.h"
#include "cluster/control/pace.h"
#include "cluster/control/protocol.h"
#include "cluster/control/watch.h"

#include <map>
#include <optional>
#include <set>

namespace dtrain::cluster {

class MemberProtocol {
  public:
    MemberProtocol(const Settings &settings, Absence &absence); // both outlive it

    void start(int64_t now, Actions &actions);
    void dialled(const Dialled &event, int64_t now, Actions &actions);
    void dial_failed(const DialFailed &event, int64_t now, Actions &actions);
    void received(wire::Message message, int64_t now, Actions &actions);
    void closed(const Closed &event, int64_t now, Actions &actions);
    void tick(int64_t now, Actions &actions);
    int64_t next_deadline() const;

    // Sends to the coordinator, now or when there is one again; DTRAIN_ERR_BUSY, DTRAIN_ERR_STATE.
    Status post(wire::Message message, Actions &actions);
    // As post(); also returns the request's number, which the GroupReply names. Asks every new
    // coordinator again, until there is a reply or withdraw().
    Status ask(wire::GroupRequest request, uint32_t &serial, Actions &actions);
    void withdraw(uint32_t serial);
    // As post(); also returns the attempt's number, which Moved carries, too.
    Status reform(wire::ReformRequest request, uint32_t &attempt, Actions &actions);
    void leave(bool moved, Actions &actions);

    bool owns(Link link) const { return link == link_ && link_ != 0; }
    bool joined() const { return phase_ == Phase::running || phase_ == Phase::seeking; }
    // While seeking: whether the coordinator's process is known to be gone.
    bool coordinator_dead() const { return dead_; }
    // Whether the other members expect to hear of this one.
    bool counted() const { return phase_ == Phase::joining || phase_ == Phase::running; }
    // Whether the workers have formed the next generation of this job.
    bool has_moved() const;
    const Membership &membership() const { return state_; }
    const Pace &pace() const { return pace_; }

  private:
    enum class Phase { idle, connecting, joining, running, seeking, over };

    bool others_may_come() const;
    int32_t first() const;
    void dial(int32_t member, const std::string &address, int64_t now, Actions &actions);
    void dial_later(const std::string &why, int64_t now);
    void connecting_tick(int64_t now, Actions &actions);
    void joining_tick(int64_t now, Actions &actions);
    void host_gone(Status status, const std::string &why, int64_t now, Actions &actions);
    void roster(wire::Roster roster, int64_t now, Actions &actions);
    void welcome(const wire::Welcome &welcome, int64_t now, Actions &actions);
    void gone(const wire::Gone &gone, int64_t now, Actions &actions);
    void answered(const wire::GroupReply &reply, Actions &actions);
    void moved(wire::Moved moved, Actions &actions);
    void run(int64_t now, int64_t grace);
    void end(Status status, const std::string &why, Actions &actions);

    // member_seeking.cpp
    void coordinator_gone(const wire::Gone &gone, bool dead, int64_t now, Actions &actions);
    void seek(int64_t now, Actions &actions);
    void seek_later(int64_t now);
    void candidate_unreached(const DialFailed &event, int64_t now, Actions &actions);
    void candidate_failed(bool is_gone, int64_t now, Actions &actions);
    void candidate_gone(const wire::Gone &gone, int64_t now, Actions &actions);
    void seeking_tick(int64_t now, Actions &actions);
    wire::Rejoin rejoin() const;

    const Settings &settings_;
    Absence &absence_;
    int32_t self_;
    Phase phase_ = Phase::idle;
    Membership state_;
    // Own numbers are 3 modulo 4, those of the coordinator's calls 1.
    Link link_ = 0, next_link_ = 3;
    bool connected_ = false; // link_ is up
    // While joining: the coordinator has confirmed that it waits for the others, too.
    bool admitted_ = false;
    Pace pace_;
    Watch watch_;

    int64_t started_ = 0, retry_at_ = INT64_MAX, backoff_ = 0, next_line_ = 0; // while connecting
    std::string obstacle_;           // what has kept it from joining so far
    std::vector<wire::Peer> roster_; // the part received so far

    int32_t candidate_ = -1;     // while seeking
    int32_t dialled_again_ = -1; // the last candidate dialed a second time
    bool clean_ = false, dead_ = false;
    // While many members leave at once: number of candidates until the next pause, and number
    // between that pause and the one after it.
    int32_t strides_left_ = 0, stride_ = 1;
    // Loss of a silent coordinator, not reported yet: perhaps this member is the one cut off.
    std::optional<wire::Gone> untold_;
    std::set<int32_t> unreachable_;
    int64_t asked_at_ = 0; // when it asked the candidate to take it in
    int64_t seek_at_ = INT64_MAX, candidate_until_ = INT64_MAX, seek_until_ = INT64_MAX;

    std::vector<wire::Message> outbox_; // used while there is no coordinator
    uint32_t serial_ = 0;               // of the last request for a group
    std::vector<wire::GroupRequest> asking_;
    std::vector<wire::GroupReply> replies_; // the last ones
    std::map<uint64_t, uint32_t> reforms_;  // begun, by group
    std::vector<wire::ReformRequest> reforming_;
    std::vector<wire::Moved> moved_; // the last ones
};

} // namespace dtrain::cluster
