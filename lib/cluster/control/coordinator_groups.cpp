// The coordinator's handling of messages between members, most of them about a group.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/coordinator.h"

#include <algorithm>
#include <set>

namespace dtrain::cluster {

bool Coordinator::from_member(int32_t member, const wire::Message &message, int64_t now,
                              Actions &actions) {
    if (const auto *m = std::get_if<wire::GroupFailed>(&message))
        return group_failed(member, *m, actions);
    if (const auto *m = std::get_if<wire::Calls>(&message)) return calls(member, *m, actions);
    if (const auto *m = std::get_if<wire::Relay>(&message)) return relay(member, *m, actions);
    if (const auto *m = std::get_if<wire::GroupRequest>(&message))
        return new_group(member, *m, now, actions);
    if (const auto *m = std::get_if<wire::ReformRequest>(&message))
        return reform(member, *m, now, actions);
    return std::holds_alternative<wire::Heartbeat>(message);
}

bool Coordinator::group_failed(int32_t member, const wire::GroupFailed &failed, Actions &actions) {
    if (!in_group(member, failed.members) || failed.guilty >= state_.size()) return false;
    call_log_.forget(failed.group);
    // Many may say so of one group, and it has many members.
    const auto [known, is_news] = broken_.try_emplace(failed.group, failed.from);
    if (!is_news && known->second <= failed.from) return true;
    known->second = failed.from;
    if (broken_.size() > most_broken) broken_.erase(broken_.begin());
    for (int32_t other : failed.members)
        if (other != member) to(other, failed, actions);
    return true;
}

bool Coordinator::calls(int32_t member, const wire::Calls &report, Actions &actions) {
    if (!in_group(member, report.members)) return false;
    CallLog::Outcome outcome = call_log_.report(member, report);
    wire::GroupFailed failed{report.group, report.members, DTRAIN_OK, {}, -1, outcome.differs};
    if (!outcome.mismatch.empty()) {
        failed.status = DTRAIN_ERR_MISMATCH;
        failed.text = "ranks made different calls: " + outcome.mismatch;
    } else if (outcome.stuck) {
        failed.status = DTRAIN_ERR_TIMEOUT;
        failed.text = "nothing moves on any rank any more (option stall.limit)";
    }
    if (failed.status != DTRAIN_OK) {
        call_log_.forget(report.group);
        for (int32_t other : report.members) to(other, failed, actions);
    }
    for (int32_t other : outcome.wanted) to(other, wire::CallsWanted{report.group}, actions);
    for (const CallLog::Behind &behind : outcome.behind)
        to(behind.member, wire::RankBehind{report.group, behind.rank, behind.seq}, actions);
    return true;
}

bool Coordinator::relay(int32_t member, const wire::Relay &relay, Actions &actions) {
    if (relay.from != member || !state_.has(relay.to)) return false;
    to(relay.to, relay, actions);
    return true;
}

bool Coordinator::new_group(int32_t member, const wire::GroupRequest &request, int64_t now,
                            Actions &actions) {
    if (!in_group(member, request.members)) return false;
    if (request.kind == wire::GroupKind::shrink && !votes_.is_asked(request))
        tell_of_wait(member, request.group, request.members, "shrinks the communicator", actions);
    answer(votes_.request(member, request, now), actions);
    return true;
}

// The others may wait for that member, outside of the group's calls.
void Coordinator::tell_of_wait(int32_t member, uint64_t group, const std::vector<int32_t> &members,
                               const char *does, Actions &actions) {
    const wire::GroupFailed told{
        group,  members,       DTRAIN_ERR_ABORTED, state_.name(member) + ' ' + does,
        member, wire::no_calls};
    for (int32_t other : members)
        if (other != member) to(other, told, actions);
}

bool Coordinator::in_group(int32_t member, const std::vector<int32_t> &members) const {
    std::set<int32_t> unique(members.begin(), members.end());
    return unique.size() == members.size() && unique.contains(member) && *unique.begin() >= 0 &&
           *unique.rbegin() < state_.size();
}

// A member that makes a group must know by then why another is not in it.
void Coordinator::answer(const GroupVotes::Answers &answers, Actions &actions) {
    if (!answers.empty()) tell_who_left(actions);
    for (const GroupVotes::Answer &one : answers) {
        const auto reply = std::make_shared<const wire::Message>(one.reply);
        for (int32_t member : one.to)
            if (auto seat = seats_.find(member); seat != seats_.end())
                actions.emplace_back(Send{seat->second, reply});
    }
}

} // namespace dtrain::cluster
