// The coordinator's dispatch of events, and its handling of members that leave or are lost.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/coordinator.h"

#include "base/hash.h"
#include "cluster/control/progress_lines.h"

#include <algorithm>

namespace dtrain::cluster {

Coordinator::Coordinator(const Settings &settings, Absence &absence, int64_t now)
    : settings_(settings), absence_(absence), phase_(Phase::joining), started_(now),
      next_line_(now + first_line), next_call_(1), pace_(Pace::of(settings, {})), watch_(pace_),
      votes_(
          state_, [this] { return new_uid(); }, settings.identity.workers),
      reforms_(state_, newcomers_, settings.identity) {
    state_.job = settings.job;
    state_.coordinator = settings.identity.member();
    roster_.emplace(settings.identity.workers, settings.identity.servers, settings.self.verify);
    links_[local_link] = {state_.coordinator, "", "", false};
}

Coordinator::Coordinator(const Settings &settings, Absence &absence, Membership state, bool dead,
                         int64_t now)
    : Coordinator(settings, absence, now) {
    bool clean = state.gone.at(state.coordinator).left;
    phase_ = Phase::failing_over;
    roster_.reset();
    state_ = std::move(state);
    state_.coordinator = settings.identity.member();
    pace_ = Pace::of(settings, state_.peers);
    watch_.set(pace_);
    failover_.emplace(state_, pace_, clean, dead, absence_, now);
}

void Coordinator::accepted(const Accepted &event, int64_t now, Actions &actions) {
    if (lobby_.size() >= wire::max_unseated)
        refuse(lobby_.begin()->first, DTRAIN_ERR_BUSY, "too many processes connect at once",
               actions);
    links_[event.link] = {event.member, event.remote, event.local, false};
    lobby_[event.link] = now + wire::seating_timeout;
}

// A process that says nothing after its handshake is no member, and may be one of very many.
void Coordinator::show_out(int64_t now, Actions &actions) {
    while (!lobby_.empty() && lobby_.begin()->second <= now)
        refuse(lobby_.begin()->first, DTRAIN_ERR_BUSY, "it sent no request after the handshake",
               actions);
}

void Coordinator::turned_away(const TurnedAway &event, int64_t now) {
    if (!roster_) return;
    roster_->turned_away(event.member, event.remote, event.text);
    if (event.member >= 0)
        // Otherwise it claimed to be no member, so members need not know.
        tell_soon(now);
}

void Coordinator::received(Link link, const wire::Message &message, int64_t now, Actions &actions) {
    auto at = links_.find(link);
    if (at == links_.end()) return;
    if (phase_ == Phase::over && !std::holds_alternative<wire::Join>(message))
        return refuse(link, DTRAIN_ERR_FENCED, why_over_, actions);
    if (newcomers_.has(link)) { // it may claim the number of a lost member
        newcomers_.heard(link, now);
        if (std::holds_alternative<wire::Heartbeat>(message)) return;
        return refuse(link, DTRAIN_ERR_STATE, "it was not taken in yet", actions);
    }
    watch_.heard(at->second.member, now);
    if (at->second.seated) take_back_doubt(at->second.member, now);
    if (const auto *m = std::get_if<wire::Join>(&message))
        join(link, *m, now, actions);
    else if (const auto *r = std::get_if<wire::Rejoin>(&message))
        rejoin(link, *r, now, actions);
    else if (at->second.seated)
        handle(link, message, now, actions);
    else
        refuse(link, DTRAIN_ERR_STATE, "it must join first", actions);
}

// Handles a message of an admitted member.
void Coordinator::handle(Link link, const wire::Message &message, int64_t now, Actions &actions) {
    int32_t member = links_[link].member;
    if (const auto *over = std::get_if<wire::Over>(&message)) {
        closed({link, over->text}, now, actions);
        actions.emplace_back(Close{link});
    } else if (const auto *leave = std::get_if<wire::Leave>(&message)) {
        actions.emplace_back(Close{link});
        if (phase_ == Phase::joining) return closed({link, "it left"}, now, actions);
        unseat(member);
        remove(state_.left(member, leave->moved), actions);
        if (!left_.empty()) tell_at_ = std::min(tell_at_, now + pace_.leaving);
        collect(now, actions);
    } else if (std::holds_alternative<wire::Deposed>(message)) {
        doubt({member, now, true, phase_ == Phase::running, why_deposed(now)}, actions);
        collect(now, actions);
    } else if (phase_ == Phase::running && !from_member(member, message, now, actions)) {
        lose(member, "it sent a malformed message", true, actions);
    }
}

void Coordinator::closed(const Closed &event, int64_t now, Actions &actions) {
    const Link link = event.link;
    auto at = links_.find(link);
    if (at == links_.end()) return;
    Connection connection = at->second;
    links_.erase(at);
    lobby_.erase(link);
    newcomer_gone(link, actions);
    if (!connection.seated) return;
    seats_.erase(connection.member);
    if (phase_ == Phase::joining)
        return end(event.status,
                   text("%s failed while joining: %s",
                        member_name(roster_->peer(connection.member)).c_str(), event.text.c_str()),
                   actions);
    if (phase_ == Phase::running) ended(connection.member, now, actions);
    lose(connection.member, event.text, false, actions, event.status);
    collect(now, actions);
}

void Coordinator::lose(int32_t member, const std::string &why, bool silent, Actions &actions,
                       Status status) {
    if (phase_ == Phase::over || !state_.alive(member)) return;
    if (auto seat = seats_.find(member); seat != seats_.end())
        refuse(seat->second, DTRAIN_ERR_FENCED,
               "the job goes on without this process, which counts as lost: " + why, actions);
    remove(state_.lost(member, why, silent, status), actions);
}

void Coordinator::remove(const wire::Gone &gone, Actions &actions) {
    state_.epoch = std::max(state_.epoch, gone.epoch);
    state_.gone[gone.member] = gone;
    watch_.stop(gone.member);
    std::erase_if(doubts_, [&](const Doubt &d) { return d.held && d.member == gone.member; });
    if (failover_) failover_->went(gone.member);
    if (phase_ != Phase::running) return; // the Welcome will tell
    if (gone.left)
        left_.push_back(gone);
    else
        to_all(gone, actions);
    answer(votes_.member_gone(), actions);
    move(reforms_.look_again(), actions);
}

void Coordinator::tell_who_left(Actions &actions) {
    for (wire::Gone &gone : left_) to_all(std::move(gone), actions);
    left_.clear();
    tell_at_ = INT64_MAX;
}

void Coordinator::end(Status status, const std::string &why, Actions &actions) {
    phase_ = Phase::over;
    why_over_ = why;
    to_all(wire::Over{status, why}, actions);
    for (const auto &[link, connection] : links_)
        if (link != local_link) actions.emplace_back(Close{link});
    links_.clear();
    seats_.clear();
    lobby_.clear();
    watch_.stop_all();
}

void Coordinator::leave(bool moved, Actions &actions) {
    if (phase_ == Phase::joining) end(DTRAIN_ERR_PEER, "rank 0 gave up joining", actions);
    tell_who_left(actions);
    if (phase_ != Phase::over) to_all(state_.left(state_.coordinator, moved), actions);
    for (const auto &[link, connection] : links_)
        if (link != local_link) actions.emplace_back(Close{link});
    phase_ = Phase::over;
}

void Coordinator::refuse(Link link, Status status, const std::string &why, Actions &actions) {
    actions.emplace_back(Send{link, wire::Over{status, why}});
    if (link != local_link) actions.emplace_back(Close{link});
    if (links_[link].seated) seats_.erase(links_[link].member);
    links_.erase(link);
    lobby_.erase(link);
    newcomer_gone(link, actions);
}

void Coordinator::seat(Link link) {
    links_[link].seated = true;
    seats_[links_[link].member] = link;
    lobby_.erase(link);
}

void Coordinator::unseat(int32_t member) {
    if (auto seat = seats_.find(member); seat != seats_.end()) {
        links_.erase(seat->second);
        seats_.erase(seat);
    }
}

void Coordinator::to(int32_t member, wire::Message message, Actions &actions) {
    if (auto seat = seats_.find(member); seat != seats_.end())
        actions.emplace_back(Send{seat->second, std::move(message)});
}

void Coordinator::to_all(wire::Message message, Actions &actions) {
    const auto one = std::make_shared<const wire::Message>(std::move(message));
    for (const auto &[member, link] : seats_) actions.emplace_back(Send{link, one});
}

// Differs from any other uid of the job, even that of a coordinator on the other side of a
// partition.
uint64_t Coordinator::new_uid() {
    uint64_t who = mix(uint64_t(state_.coordinator) + 1);
    return mix(state_.job + mix(who + mix(state_.epoch << 20 | ++uids_made_)));
}

void Coordinator::tick(int64_t now, Actions &actions) {
    show_out(now, actions);
    tick_newcomers(now, actions);
    beat_for_waiting(now, actions);
    if (phase_ == Phase::joining) say_who_is_missing(now, actions);
    if (phase_ == Phase::failing_over) collect(now, actions);
    if (phase_ != Phase::running) return;
    watch(now, actions);
    if (now >= tell_at_) tell_who_left(actions);
    answer(votes_.tick(now), actions);
    move(reforms_.tick(now), actions);
}

int64_t Coordinator::next_deadline() const {
    const int64_t lobby =
        std::min({lobby_.empty() ? INT64_MAX : lobby_.begin()->second,
                  newcomers_.next_deadline(pace_), is_awaited() ? beat_at_ : INT64_MAX});
    switch (phase_) {
    case Phase::joining: return std::min({lobby, next_line_, settings_.join_deadline});
    case Phase::failing_over: return std::min(lobby, failover_->next_deadline());
    case Phase::running:
        return std::min({lobby, watch_.next_deadline(), votes_.next_deadline(),
                         reforms_.next_deadline(), next_judgement(), tell_at_});
    case Phase::over: break;
    }
    return lobby;
}

} // namespace dtrain::cluster
