// Collects the requests for a group, and decides it when all that are needed have asked.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/group_votes.h"

#include "cluster/control/group_attempt.h"

#include <algorithm>
#include <bit>

namespace dtrain::cluster {
namespace {

struct Rule {
    bool whole;       // needs all of the list: a member that is gone fails it
    const char *must; // who must ask
};
constexpr Rule rules[] = {
    {false, "every survivor must call it"},
    {true, "every rank of the list must call it, with the same list and tag"},
};
static_assert(std::size(rules) == size_t(wire::GroupKind::last) + 1);

const Rule &rule_of(wire::GroupKind kind) { return rules[size_t(kind)]; }

wire::GroupReply failure(wire::GroupKind kind, Status status, const std::string &why) {
    wire::GroupReply reply;
    reply.status = status;
    reply.text = text("%s: %s", group_call(kind), why.c_str());
    return reply;
}

} // namespace

GroupVotes::Answers GroupVotes::request(int32_t member, const wire::GroupRequest &request,
                                        int64_t now) {
    for (const wire::GroupReply &reply : finished_)
        if (answered_serial(reply, member) == request.serial) return {{{member}, reply}};
    Key key{request.kind, request.group, request.user_tag, request.members};
    const auto at = pending_.try_emplace(std::move(key)).first;
    Pending &pending = at->second;
    pending.asked[member] = {request.serial, request.used, request.held, request.round};
    int64_t room = INT64_MAX - now;
    pending.deadline = std::min(pending.deadline, now + std::min(room, request.timeout_ns));
    Answers answers;
    look(at, answers);
    watch_for_shrinks(now);
    return answers;
}

bool GroupVotes::is_asked(const wire::GroupRequest &request) const {
    return pending_.contains({request.kind, request.group, request.user_tag, request.members});
}

GroupVotes::Answers GroupVotes::member_gone() {
    Answers answers;
    for (auto at = pending_.begin(); at != pending_.end();) {
        const auto next = std::next(at);
        std::erase_if(at->second.asked, [&](const auto &one) { return !state_.alive(one.first); });
        if (at->second.asked.empty())
            pending_.erase(at);
        else
            look(at, answers);
        at = next;
    }
    return answers;
}

GroupVotes::Answers GroupVotes::tick(int64_t now) {
    Answers answers;
    for (auto at = pending_.begin(); at != pending_.end();) {
        const auto next = std::next(at);
        const auto &[key, pending] = *at;
        // The shrink may have ended just now, for want of time.
        const bool gives_way = now >= pending.gives_way && shrinking(key, pending) >= 0;
        if (now >= pending.deadline || gives_way) finish(at, give_up(key, pending), answers);
        at = next;
    }
    watch_for_shrinks(now);
    return answers;
}

int64_t GroupVotes::next_deadline() const {
    int64_t next = INT64_MAX;
    for (const auto &[key, pending] : pending_)
        next = std::min({next, pending.deadline, pending.gives_way});
    return next;
}

void GroupVotes::remember(const wire::GroupReply &reply) {
    const int32_t first = reply.members.front();
    for (const wire::GroupReply &known : finished_)
        if (answered_serial(known, first) == reply.serials.front()) return;
    if (finished_.size() >= max_finished) finished_.erase(finished_.begin());
    finished_.push_back(reply);
}

bool GroupVotes::is_needed(const Key &key, int32_t member) const {
    return rule_of(key.kind).whole || state_.alive(member);
}

// In ascending order.
std::vector<int32_t> GroupVotes::missing(const Key &key, const Pending &pending) const {
    std::vector<int32_t> out;
    for (int32_t m : key.members)
        if (is_needed(key, m) && !pending.asked.contains(m)) out.push_back(m);
    std::sort(out.begin(), out.end());
    return out;
}

// Answers those that have asked, if there is an answer by now.
void GroupVotes::look(All::iterator at, Answers &answers) {
    const auto &[key, pending] = *at;
    const std::vector<int32_t> absent = missing(key, pending);
    const auto lost = std::ranges::find_if(absent, [&](int32_t m) { return !state_.alive(m); });
    if (lost != absent.end())
        finish(at, failure(key.kind, DTRAIN_ERR_PEER, state_.gone.at(*lost).text), answers);
    else if (absent.empty())
        finish(at, decide(key.kind, pending), answers);
}

wire::GroupReply GroupVotes::decide(wire::GroupKind kind, const Pending &pending) {
    wire::GroupReply reply;
    const int32_t held = pending.asked.begin()->second.held;
    bool equal = held != wire::no_tag;
    for (const auto &[member, request] : pending.asked) {
        equal = equal && request.held == held;
        for (size_t i = 0; i < reply.used.size(); i++) reply.used[i] |= request.used[i];
        reply.round = std::max(reply.round, request.round + 1);
    }
    if (equal) {
        reply.tag_id = uint32_t(held);
        reply.new_group = new_group_();
    } else if (std::ranges::all_of(reply.used, [](uint64_t word) { return word == UINT64_MAX; })) {
        return failure(kind, DTRAIN_ERR_LIMIT,
                       "all communicators that a process can have are in use; destroy some");
    } else {
        reply.again = true;
    }
    return reply;
}

wire::GroupReply GroupVotes::give_up(const Key &key, const Pending &pending) {
    if (std::string differs = find_difference(key, pending); !differs.empty())
        return failure(key.kind, DTRAIN_ERR_MISMATCH, differs);
    if (int32_t member = shrinking(key, pending); member >= 0)
        return failure(key.kind, DTRAIN_ERR_ABORTED,
                       text("%s shrinks a communicator and waits for this rank to do so too",
                            member_name(member, workers_).c_str()));
    return failure(key.kind, DTRAIN_ERR_TIMEOUT, // in job numbers
                   text("still waiting for %s; %s",
                        member_list(missing(key, pending), workers_).c_str(),
                        rule_of(key.kind).must));
}

// Whether a member that is missing here has asked for another list instead; both sides get the same
// text. It may also ask for both, which are different groups, so nothing is wrong until time is
// over.
std::string GroupVotes::find_difference(const Key &key, const Pending &pending) {
    if (!pending.differs.empty()) return pending.differs;
    for (int32_t m : missing(key, pending))
        for (auto &[other, theirs] : pending_) {
            if (other.kind != key.kind || other.group != key.group ||
                other.user_tag != key.user_tag || !theirs.asked.contains(m))
                continue;
            return theirs.differs = text(
                       "%s gives %s, but %s gives %s, with the same tag %d",
                       member_name(pending.asked.begin()->first, workers_).c_str(),
                       member_list(key.members, workers_).c_str(), member_name(m, workers_).c_str(),
                       member_list(other.members, workers_).c_str(), key.user_tag);
        }
    return "";
}

// A member that is missing here and waits in a shrink for one that has asked here; -1: none.
int32_t GroupVotes::shrinking(const Key &key, const Pending &pending) const {
    if (key.kind == wire::GroupKind::shrink) return -1;
    for (int32_t m : missing(key, pending))
        for (const auto &[other, theirs] : pending_) {
            if (other.kind != wire::GroupKind::shrink || !theirs.asked.contains(m)) continue;
            for (int32_t waited_for : missing(other, theirs))
                if (pending.asked.contains(waited_for)) return m;
        }
    return -1;
}

void GroupVotes::watch_for_shrinks(int64_t now) {
    for (auto &[key, pending] : pending_) {
        if (shrinking(key, pending) < 0)
            pending.gives_way = INT64_MAX;
        else if (pending.gives_way == INT64_MAX)
            pending.gives_way = now + std::min(grace, (pending.deadline - now) / 4);
    }
}

void GroupVotes::finish(All::iterator at, wire::GroupReply reply, Answers &answers) {
    const auto &[key, pending] = *at;
    reply.group = key.group;
    for (int32_t m : key.members)
        if (auto asked = pending.asked.find(m); asked != pending.asked.end()) {
            reply.members.push_back(m);
            reply.serials.push_back(asked->second.serial);
        }
    pending_.erase(at);
    if (!reply.again) remember(reply);
    std::vector<int32_t> to = reply.members;
    answers.push_back({std::move(to), std::move(reply)});
}

} // namespace dtrain::cluster
