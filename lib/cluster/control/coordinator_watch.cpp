// How the coordinator watches its members' health.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/coordinator.h"

#include <algorithm>

namespace dtrain::cluster {
namespace {

std::string pause_text(int64_t pause) {
    return text(", which did not run for %lld ms", static_cast<long long>(pause / ms));
}

} // namespace

void Coordinator::beat(Actions &actions) {
    for (const auto &[member, link] : seats_)
        if (link != local_link) actions.emplace_back(Send{link, wire::Heartbeat{state_.epoch}});
}

void Coordinator::watch(int64_t now, Actions &actions) {
    Watch::Due due = watch_.check(now);
    if (due.beat) beat(actions);
    for (Watch::Silent silent : due.silent)
        doubt({silent.member, now, false, true, pace_.silence(silent.ns)}, actions);
    judge(now, actions);
}

// The member seems lost but may live; then this side may be the one that is cut off or was not
// running. Some members report this themselves, others are noticed a little later, so the loss is
// held back for a while.
void Coordinator::doubt(const Doubt &doubt, Actions &actions) {
    const int32_t member = doubt.member;
    if (!state_.alive(member)) return;
    const int64_t now = doubt.when, window = 3 * pace_.timeout;
    std::erase_if(doubts_, [&](const Doubt &d) {
        return d.member == member || (!d.held && now - d.when > window);
    });
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

// A member whose connection ends is lost at once. But where others have deposed this coordinator,
// or had time to, it may have been one of them, and its message that says so was lost with the
// connection.
void Coordinator::ended(int32_t member, int64_t now, Actions &actions) {
    if (std::ranges::find(doubts_, member, &Doubt::member) != doubts_.end()) return; // it counts
    std::erase_if(ends_, [&](int64_t when) { return now - when > 3 * pace_.timeout; });
    ends_.push_back(now);
    judge(now, actions, 1);
}

// If more members are doubted at about the same time than remain, they go on, and this side does
// not.
void Coordinator::judge(int64_t now, Actions &actions, size_t ending) {
    if (phase_ == Phase::over) return;
    const auto held = size_t(std::ranges::count_if(doubts_, &Doubt::held));
    const size_t left = size_t(state_.alive_count()) - held - ending;
    const bool absent = absence_.was_long(now, pace_),
               deposed = std::ranges::any_of(doubts_, &Doubt::deposed);
    const size_t others = doubts_.size() + (absent || deposed ? ends_.size() : 0);
    const bool alone = left == 1 && deposed;
    if (others > left || alone) return give_way(others, now, actions);
    for (size_t i = 0; i < doubts_.size(); i++) // losing one adds none
        if (doubts_[i].held && now - doubts_[i].when >= hold()) {
            doubts_[i].held = false;
            lose(doubts_[i].member, doubts_[i].why, true, actions);
        }
}

// The member tells what it has seen; why it has seen that is known here.
std::string Coordinator::why_deposed(int64_t now) const {
    std::string why = "it heard nothing from the coordinator";
    if (const int64_t pause = absence_.recent_pause(now, pace_); pause > 0)
        why += " " + state_.name(state_.coordinator) + pause_text(pause);
    return why + " (option heartbeat.timeout)";
}

void Coordinator::give_way(size_t others, int64_t now, Actions &actions) {
    const int64_t pause = absence_.recent_pause(now, pace_);
    std::string why = "the job went on without this process";
    if (pause > 0) why += pause_text(pause);
    why += text(": it lost %zu members at once (option heartbeat.timeout: %lld ms)", others,
                static_cast<long long>(pace_.timeout / ms));
    if (!doubts_.empty())
        why += "; the last one, " + state_.name(doubts_.back().member) + ": " + doubts_.back().why;
    end(DTRAIN_ERR_FENCED, why, actions);
}

int64_t Coordinator::next_judgement() const {
    int64_t next = INT64_MAX;
    for (const Doubt &d : doubts_)
        if (d.held) next = std::min(next, d.when + hold());
    return next;
}

} // namespace dtrain::cluster
