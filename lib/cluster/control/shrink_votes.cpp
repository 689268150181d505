// Collects the requests of a shrink, and decides it when all survivors have asked.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/shrink_votes.h"

#include "cluster/host/names.h"

#include <algorithm>
#include <bit>

namespace dtrain::cluster {

ShrinkVotes::Answers ShrinkVotes::request(int32_t member, const wire::ShrinkRequest &request,
                                          int64_t now) {
    for (const wire::ShrinkReply &reply : finished_)
        if (reply.group == request.group && reply.attempt == request.attempt)
            return {{member, reply}};
    Key key{request.group, request.attempt};
    Pending &pending = pending_[key];
    Answers answers;
    if (pending.members.empty()) pending.members = request.members;
    pending.asked[member] = request.used;
    if (pending.members != request.members) {
        wire::ShrinkReply reply;
        reply.status = DTRAIN_ERR_MISMATCH;
        reply.text = text("shrink: %s named other members of the group than the rest",
                          member_name(member, workers_).c_str());
        finish(key, reply, answers);
        return answers;
    }
    int64_t room = INT64_MAX - now;
    pending.deadline = std::min(pending.deadline, now + std::min(room, request.timeout_ns));
    if (complete(pending)) finish(key, decide(pending), answers);
    return answers;
}

ShrinkVotes::Answers ShrinkVotes::member_gone() {
    std::vector<Key> ready;
    for (auto &[key, pending] : pending_) {
        std::erase_if(pending.asked, [&](const auto &one) { return !alive_(one.first); });
        if (complete(pending)) ready.push_back(key);
    }
    Answers answers;
    for (Key key : ready) finish(key, decide(pending_[key]), answers);
    return answers;
}

ShrinkVotes::Answers ShrinkVotes::tick(int64_t now) {
    std::vector<Key> late;
    for (const auto &[key, pending] : pending_)
        if (now >= pending.deadline) late.push_back(key);
    Answers answers;
    for (Key key : late) finish(key, give_up(pending_[key]), answers);
    return answers;
}

int64_t ShrinkVotes::next_deadline() const {
    int64_t next = INT64_MAX;
    for (const auto &[key, pending] : pending_) next = std::min(next, pending.deadline);
    return next;
}

void ShrinkVotes::remember(const wire::ShrinkReply &reply) {
    for (const wire::ShrinkReply &known : finished_)
        if (known.group == reply.group && known.attempt == reply.attempt) return;
    if (finished_.size() >= max_finished) finished_.erase(finished_.begin());
    finished_.push_back(reply);
}

bool ShrinkVotes::complete(const Pending &pending) const {
    return std::all_of(pending.members.begin(), pending.members.end(),
                       [&](int32_t m) { return !alive_(m) || pending.asked.contains(m); });
}

wire::ShrinkReply ShrinkVotes::decide(const Pending &pending) {
    wire::ShrinkReply reply;
    wire::TagSet used{};
    for (const auto &[member, tags] : pending.asked)
        for (size_t i = 0; i < used.size(); i++) used[i] |= tags[i];
    size_t word = 0;
    while (word < used.size() && used[word] == UINT64_MAX) word++;
    if (word == used.size()) {
        reply.status = DTRAIN_ERR_LIMIT;
        reply.text = "shrink: all communicators that a process can have are in use; destroy some";
        return reply;
    }
    reply.tag_id = uint32_t(64 * word) + uint32_t(std::countr_one(used[word]));
    for (int32_t m : pending.members)
        if (alive_(m)) reply.survivors.push_back(m);
    reply.new_group = new_group_();
    return reply;
}

wire::ShrinkReply ShrinkVotes::give_up(const Pending &pending) const {
    std::vector<int32_t> missing;
    for (int32_t m : pending.members)
        if (alive_(m) && !pending.asked.contains(m)) missing.push_back(m);
    std::sort(missing.begin(), missing.end());
    wire::ShrinkReply reply;
    reply.status = DTRAIN_ERR_TIMEOUT;
    reply.text = text("shrink: still waiting for %s; every survivor must call it", // in job numbers
                      member_list(missing, workers_).c_str());
    return reply;
}

void ShrinkVotes::finish(Key key, wire::ShrinkReply reply, Answers &answers) {
    reply.group = key.first;
    reply.attempt = key.second;
    for (const auto &[member, tags] : pending_[key].asked) answers.push_back({member, reply});
    pending_.erase(key);
    remember(reply);
}

} // namespace dtrain::cluster
