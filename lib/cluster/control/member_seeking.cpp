// A member that has lost its coordinator, until it has found the next one.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/member_protocol.h"

#include <utility>

namespace dtrain::cluster {
namespace {

constexpr int seek_timeouts = 4; // number of heartbeat timeouts until it gives up

} // namespace

void MemberProtocol::coordinator_gone(const wire::Gone &gone, bool dead, int64_t now,
                                      Actions &actions) {
    if (connected_) {
        actions.emplace_back(Send{link_, wire::Deposed{state_.epoch}});
        actions.emplace_back(Close{link_});
    }
    link_ = 0;
    connected_ = false;
    phase_ = Phase::seeking;
    clean_ = gone.left;
    dead_ = dead;
    absence_.lost_coordinator(now, pace_);
    unreachable_.clear();
    dialled_again_ = -1;
    seek_until_ = now + seek_timeouts * pace_.timeout;
    state_.gone[gone.member] = gone;
    if (gone.silent)
        untold_ = gone;
    else
        actions.emplace_back(Report{gone});
    stride_ = 1;
    if (clean_)
        seek_later(now);
    else
        seek(now, actions);
}

// Jobs mostly end with all members leaving at once; no new coordinator is needed then. So when a
// candidate has left, this member pauses before it calls the next, and pauses ever more rarely: in
// a crowd that leaves, each member calls only a few others, and one that stays has soon called all.
void MemberProtocol::seek_later(int64_t now) {
    strides_left_ = stride_;
    stride_ *= 2;
    seek_at_ = now + pace_.leaving;
    candidate_until_ = INT64_MAX;
}

void MemberProtocol::seek(int64_t now, Actions &actions) {
    seek_at_ = INT64_MAX;
    for (candidate_ = 0; candidate_ < state_.size(); candidate_++) {
        if (!state_.alive(candidate_) || unreachable_.contains(candidate_)) continue;
        const std::string &listener = state_.peers[size_t(candidate_)].listener;
        if (candidate_ == self_ || !listener.empty())
            return dial(candidate_, listener, now, actions);
    }
    end(DTRAIN_ERR_FENCED, "no member is left that could be the coordinator", actions);
}

wire::Rejoin MemberProtocol::rejoin() const {
    wire::Rejoin message{state_.job, state_.epoch, self_, {}, replies_, moved_};
    for (const auto &[member, gone] : state_.gone) message.gone.push_back(gone);
    return message;
}

// A process that ends closes connections that it had not answered yet; the next attempt is refused.
void MemberProtocol::candidate_unreached(const DialFailed &event, int64_t now, Actions &actions) {
    if (event.status == DTRAIN_ERR_PEER && std::exchange(dialled_again_, candidate_) != candidate_)
        return dial(candidate_, state_.peers[size_t(candidate_)].listener, now, actions);
    candidate_failed(event.refused, now, actions);
}

void MemberProtocol::candidate_failed(bool is_gone, int64_t now, Actions &actions) {
    if (is_gone && !has_moved()) absence_.found_ended(now, pace_);
    if (is_gone)
        return candidate_gone(clean_ ? state_.left(candidate_, has_moved())
                                     : state_.lost(candidate_, "its process has ended", false),
                              now, actions);
    unreachable_.insert(candidate_);
    seek(now, actions);
}

void MemberProtocol::candidate_gone(const wire::Gone &gone, int64_t now, Actions &actions) {
    if (link_ != 0) actions.emplace_back(Close{link_});
    link_ = 0;
    connected_ = false;
    state_.gone[gone.member] = gone;
    actions.emplace_back(Report{gone});
    if (clean_ && --strides_left_ <= 0)
        seek_later(now);
    else
        seek(now, actions);
}

void MemberProtocol::seeking_tick(int64_t now, Actions &actions) {
    if (now >= seek_until_)
        return end(DTRAIN_ERR_FENCED,
                   text("no other coordinator could be reached within %lld ms (option "
                        "heartbeat.timeout: %lld ms)",
                        static_cast<long long>(seek_timeouts * pace_.timeout / ms),
                        static_cast<long long>(pace_.timeout / ms)),
                   actions);
    if (now >= seek_at_) return seek(now, actions);
    if (now < candidate_until_) return;
    if (connected_) actions.emplace_back(Send{link_, wire::Deposed{state_.epoch}});
    if (link_ != 0) actions.emplace_back(Close{link_});
    link_ = 0;
    connected_ = false;
    candidate_failed(false, now, actions);
}

void MemberProtocol::welcome(const wire::Welcome &welcome, int64_t now, Actions &actions) {
    state_.coordinator = candidate_;
    state_.epoch = welcome.epoch;
    absence_.answered(asked_at_, now, pace_);
    run(now, 0);
    if (untold_) actions.emplace_back(Report{*std::exchange(untold_, std::nullopt)});
    for (const wire::Gone &one : welcome.gone) {
        gone(one, now, actions);
        if (phase_ != Phase::running) return;
    }
    for (wire::Message &message : outbox_) actions.emplace_back(Send{link_, std::move(message)});
    outbox_.clear();
    for (const wire::GroupRequest &request : asking_) actions.emplace_back(Send{link_, request});
    for (const wire::ReformRequest &request : reforming_)
        actions.emplace_back(Send{link_, request});
}

} // namespace dtrain::cluster
