// The coordinator until the job runs: it gathers a new job, or collects members after a takeover.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/coordinator.h"
#include "cluster/control/progress_lines.h"
#include "cluster/host/socket.h"

#include <algorithm>

namespace dtrain::cluster {
namespace {

constexpr size_t roster_chunk = 64; // members per message; keeps it far below max_frame

} // namespace

void Coordinator::join(Link link, const wire::Join &join, int64_t now, Actions &actions) {
    Connection &connection = links_[link];
    const bool runs = phase_ == Phase::running || phase_ == Phase::failing_over;
    // It was told of another list of members than those who are here.
    if (join.generation > 0 && (runs || join.generation != settings_.identity.generation))
        return refuse(link, DTRAIN_ERR_STATE,
                      text("generation %u has formed without this process",
                           unsigned(settings_.identity.generation)),
                      actions);
    if (settings_.elastic && (join.newcomer || runs) && phase_ != Phase::over)
        return wait_to_come_in(link, join, now, actions);
    if (join.newcomer)
        return refuse(link, DTRAIN_ERR_CONFIG,
                      "this job takes nobody in while it runs (set option elastic=yes for all of "
                      "its processes)",
                      actions);
    if (phase_ != Phase::joining) return join_later(link, actions);
    bool hopeless = false;
    if (Status s = roster_->admit(connection.member, connection.remote, join, hopeless);
        s != DTRAIN_OK)
        return refuse_joining(link, s, error_text(), hopeless, now, actions);
    seat(link);
    if (roster_->complete()) return start(now, actions);
    to(connection.member, wire::Waiting{}, actions);
}

// If a process that has proven to belong to the job can never join, the job ends, since it can
// never be complete. Others may be strangers, or belong to an earlier job: the members are told,
// and go on waiting.
void Coordinator::refuse_joining(Link link, Status status, const std::string &why, bool hopeless,
                                 int64_t now, Actions &actions) {
    const std::string who = member_name(links_[link].member, settings_.identity.workers) + " (" +
                            links_[link].remote + ")";
    refuse(link, status, "rank 0 refused: " + why, actions);
    if (hopeless && settings_.authenticated)
        return end(status, text("joining the job: %s was refused: %s", who.c_str(), why.c_str()),
                   actions);
    tell_soon(now);
}

// Schedules a log line about which members have come, but not one line for each stranger.
void Coordinator::tell_soon(int64_t now) {
    next_line_ = std::min(next_line_, std::max(now, last_line_ + second));
}

// Programs run one job after another at the same address: a member that has left waits for the
// others to leave, too. A process with the number of a lost member can only be another one.
void Coordinator::join_later(Link link, Actions &actions) {
    auto gone = state_.gone.find(links_[link].member);
    if (phase_ != Phase::over && gone != state_.gone.end() && !gone->second.left)
        return refuse(link, DTRAIN_ERR_STATE,
                      "a job goes on here without this process: " + gone->second.text, actions);
    refuse(link, DTRAIN_ERR_BUSY,
           phase_ == Phase::over ? "it has not closed its previous job, which is over"
                                 : text("it is still in another job, which has not ended (%d of %d "
                                        "members left)",
                                        state_.alive_count(), state_.size()),
           actions);
}

void Coordinator::start(int64_t now, Actions &actions) {
    state_.peers = roster_->take_members();
    roster_.reset();
    std::string own = "local";
    for (const auto &[member, link] : seats_) {
        const Connection &c = links_[link];
        wire::Peer &peer = state_.peers[size_t(member)];
        if (link != local_link) own = c.local;
        std::string port = peer.listener.substr(peer.listener.rfind(':') + 1);
        peer.label = text("%s pid %d", join_endpoint(c.remote, port).c_str(), peer.pid);
    }
    wire::Peer &self = state_.peers[size_t(state_.coordinator)];
    self.label = text("%s pid %d", own.c_str(), self.pid);
    phase_ = Phase::running;
    pace_ = Pace::of(settings_, state_.peers);
    watch_.set(pace_);
    for (size_t first = 0; first < state_.peers.size(); first += roster_chunk) {
        size_t end = std::min(first + roster_chunk, state_.peers.size());
        to_all(wire::Roster{state_.job,
                            state_.epoch,
                            uint32_t(first),
                            uint32_t(state_.peers.size()),
                            {state_.peers.begin() + long(first), state_.peers.begin() + long(end)}},
               actions);
    }
    for (const auto &[member, link] : seats_) // their members have the most to do now
        if (link != local_link) watch_.start(member, now, pace_.timeout);
    tell_newcomers(actions);
}

void Coordinator::say_who_is_missing(int64_t now, Actions &actions) {
    auto seconds = [&] { return double(now - started_) / double(second); };
    if (now >= settings_.join_deadline)
        return end(
            DTRAIN_ERR_TIMEOUT,
            text("joining the job timed out after %.1f s: %s", seconds(), roster_->state().c_str()),
            actions);
    if (now < next_line_) return;
    last_line_ = now;
    next_line_ = now + line_interval;
    to_all(
        wire::Waiting{text("waiting %.0f s for the job: %s", seconds(), roster_->state().c_str())},
        actions);
}

// Whether processes wait here for the job, or for its next generation.
bool Coordinator::is_awaited() const { return phase_ == Phase::joining || newcomers_.count() > 0; }

// They would wait for their whole timeout if this host lost its power.
void Coordinator::beat_for_waiting(int64_t now, Actions &actions) {
    if (!is_awaited() || now < beat_at_) return;
    beat_at_ = now + pace_.interval;
    if (phase_ == Phase::joining) beat(actions);
    for (const Newcomer &one : newcomers_.all())
        actions.emplace_back(Send{one.link, wire::Heartbeat{state_.epoch}});
}

void Coordinator::rejoin(Link link, const wire::Rejoin &rejoin, int64_t now, Actions &actions) {
    Connection &connection = links_[link];
    int32_t member = connection.member;
    if (phase_ != Phase::failing_over || rejoin.job != state_.job || rejoin.member != member ||
        connection.seated || !state_.alive(member))
        return refuse(link, DTRAIN_ERR_FENCED, "the job goes on without this process", actions);
    state_.epoch = std::max(state_.epoch, rejoin.epoch);
    for (const wire::Gone &gone : rejoin.gone) {
        if (!state_.alive(gone.member)) continue;
        // The predecessor has reported this loss to the member, which cannot be undone.
        if (auto seat = seats_.find(gone.member); seat != seats_.end())
            refuse(seat->second, DTRAIN_ERR_FENCED,
                   "the job goes on without this process: " + gone.text, actions);
        remove(gone, actions);
    }
    if (!state_.alive(member))
        return refuse(link, DTRAIN_ERR_FENCED, "it reported itself as gone", actions);
    for (const wire::GroupReply &reply : rejoin.replies) votes_.remember(reply);
    for (const wire::Moved &moved : rejoin.moved) reforms_.remember(moved);
    if (!state_.alive(state_.coordinator))
        return end(DTRAIN_ERR_FENCED, "the job goes on without this process", actions);
    seat(link);
    failover_->came(member);
    collect(now, actions);
}

void Coordinator::collect(int64_t now, Actions &actions) {
    if (phase_ != Phase::failing_over) return;
    for (int32_t member : failover_->to_call(now)) {
        Link link = next_call_;
        next_call_ += 4; // the member protocol's own numbers are 3 modulo 4
        calls_out_[link] = member;
        actions.emplace_back(Dial{link, member, state_.peers[size_t(member)].listener});
    }
    if (failover_->over(now)) resume(now, actions);
}

void Coordinator::called(Link link, bool refused, int64_t now, Actions &actions) {
    auto call = calls_out_.find(link);
    if (call == calls_out_.end()) return;
    int32_t member = call->second;
    calls_out_.erase(call);
    if (phase_ != Phase::failing_over || !refused || !failover_->missing().contains(member)) return;
    const bool moved = reforms_.decided();
    failover_->ended(member, now, moved);
    remove(failover_->clean() ? state_.left(member, moved)
                              : state_.lost(member, "its process has ended", false),
           actions);
    collect(now, actions);
}

void Coordinator::resume(int64_t now, Actions &actions) {
    if (!failover_->goes_on())
        return end(DTRAIN_ERR_FENCED,
                   text("isolated: too few members can reach each other after the loss of a "
                        "coordinator (%zu may have gone on without them%s)",
                        failover_->others(), failover_->absence(now).c_str()),
                   actions);
    std::set<int32_t> missing = failover_->missing();
    failover_.reset();
    for (int32_t member : missing)
        remove(state_.lost(member, "it did not connect to the new coordinator", true), actions);
    phase_ = Phase::running;
    state_.epoch++;
    wire::Welcome welcome{state_.epoch, {}};
    for (const auto &[member, gone] : state_.gone) welcome.gone.push_back(gone);
    to_all(welcome, actions);
    for (const auto &[member, link] : seats_)
        if (link != local_link) watch_.start(member, now);
    tell_newcomers(actions);
    // Newcomers belong to the next generation, once there is one.
    if (settings_.elastic && reforms_.decided())
        door_awaits_ = true;
    else if (settings_.elastic)
        actions.emplace_back(OpenDoor{});
}

} // namespace dtrain::cluster
