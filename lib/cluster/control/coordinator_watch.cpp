// How the coordinator watches its members' health.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/coordinator.h"

#include <algorithm>

namespace dtrain::cluster {

void Coordinator::watch(int64_t now, Actions &actions) {
    Watch::Due due = watch_.check(now);
    if (due.beat)
        for (const auto &[member, link] : seats_)
            if (link != local_link) actions.emplace_back(Send{link, wire::Heartbeat{state_.epoch}});
    for (Watch::Silent silent : due.silent)
        doubt({silent.member, now, false, true, pace_.silence(silent.ns)}, actions);
    judge(now, actions);
}

// The member seems lost but may live; then this side may be the one that is cut off or was not
// running. Some members report this themselves, others are noticed a little later, so the loss is
// held back for a while.
void Coordinator::doubt(Doubt doubt, Actions &actions) {
    const int32_t member = doubt.member;
    if (!state_.alive(member)) return;
    const int64_t now = doubt.when, window = 3 * pace_.timeout;
    std::erase_if(doubts_, [&](const Doubt &d) {
        return d.member == member || (!d.held && now - d.when > window);
    });
    doubt.own_pause = watch_.own_pause(now);
    doubts_.push_back(doubt);
    watch_.stop(member);
    if (!doubt.held) lose(member, doubt.why, true, actions);
    if (auto seat = seats_.find(member); doubt.deposed && seat != seats_.end()) {
        actions.emplace_back(Close{seat->second});
        unseat(member);
    }
    judge(now, actions);
}

void Coordinator::take_back_doubt(int32_t member, int64_t now) {
    const auto is_silent = [&](const Doubt &d) {
        return d.held && !d.deposed && d.member == member;
    };
    if (std::erase_if(doubts_, is_silent) > 0) watch_.start(member, now);
}

// If more members are doubted at about the same time than remain, they go on, and this side does
// not.
void Coordinator::judge(int64_t now, Actions &actions) {
    if (phase_ == Phase::over) return;
    const auto held = size_t(std::ranges::count_if(doubts_, &Doubt::held));
    const size_t left = size_t(state_.alive_count()) - held;
    const bool alone = left == 1 && std::ranges::any_of(doubts_, &Doubt::deposed);
    if (doubts_.size() > left || alone) {
        const int64_t pause = std::ranges::max(doubts_, {}, &Doubt::own_pause).own_pause;
        const std::string own =
            pause > 0 ? text(", which did not run for %lld ms", static_cast<long long>(pause / ms))
                      : "";
        return end(DTRAIN_ERR_FENCED,
                   text("the job went on without this process%s: it lost %zu members at once; "
                        "the last one, %s: %s",
                        own.c_str(), doubts_.size(), state_.name(doubts_.back().member).c_str(),
                        doubts_.back().why.c_str()),
                   actions);
    }
    for (size_t i = 0; i < doubts_.size(); i++) // losing one adds none
        if (doubts_[i].held && now - doubts_[i].when >= hold()) {
            doubts_[i].held = false;
            lose(doubts_[i].member, doubts_[i].why, true, actions);
        }
}

int64_t Coordinator::next_judgement() const {
    int64_t next = INT64_MAX;
    for (const Doubt &d : doubts_)
        if (d.held) next = std::min(next, d.when + hold());
    return next;
}

} // namespace dtrain::cluster
