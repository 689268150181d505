// Collects the requests of a reform, and decides who is in the next generation.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/reform_votes.h"

#include <algorithm>

namespace dtrain::cluster {

ReformVotes::Answers ReformVotes::request(int32_t member, const wire::ReformRequest &request,
                                          int64_t now) {
    Answers answers;
    if (const wire::Moved *moved = answer_to(request)) return {{{member}, {}, *moved}};
    const Key key{request.group, request.attempt};
    Pending &pending = pending_[key];
    if (pending.members.empty()) pending.members = request.members;
    pending.asked[member] = {request.place, request.leaves};
    if (Status s = check(member, pending, request); s != DTRAIN_OK) {
        finish(key, {{}, {}, refuse(s)}, answers);
        return answers;
    }
    pending.smallest = std::max(pending.smallest, request.smallest);
    if (request.largest > 0)
        pending.largest =
            pending.largest == 0 ? request.largest : std::min(pending.largest, request.largest);
    pending.deadline =
        std::min(pending.deadline, now + std::min(INT64_MAX - now, request.timeout_ns));
    return look_again();
}

const wire::Moved *ReformVotes::answer_to(const wire::ReformRequest &request) const {
    const auto known = std::ranges::find_if(finished_, [&](const wire::Moved &moved) {
        return moved.group == request.group && moved.attempt == request.attempt;
    });
    return known != finished_.end() ? &*known : nullptr;
}

Status ReformVotes::check(int32_t member, const Pending &pending,
                          const wire::ReformRequest &request) const {
    if (pending.members != request.members)
        return fail(DTRAIN_ERR_MISMATCH,
                    "reform: %s named other members of the group than the rest",
                    member_name(member, own_.workers).c_str());
    if (first_moved() != nullptr) return too_late();
    for (int32_t m = 0; m < state_.size(); m++)
        if (state_.peers[size_t(m)].role == 0 && state_.alive(m) &&
            std::ranges::find(request.members, m) == request.members.end())
            return fail(DTRAIN_ERR_INVALID,
                        "reform: %s is a worker of the job, but not in this communicator; call it "
                        "on the communicator of all workers (a worker may leave by it)",
                        state_.name(m).c_str());
    return DTRAIN_OK;
}

ReformVotes::Answers ReformVotes::look_again() {
    std::vector<Key> ready;
    const bool late = first_moved() != nullptr;
    for (auto &[key, pending] : pending_) {
        std::erase_if(pending.asked, [&](const auto &one) { return !state_.alive(one.first); });
        if (late || (complete(pending) && large_enough(pending))) ready.push_back(key);
    }
    Answers answers;
    for (Key key : ready) {
        Answer answer = late ? Answer{{}, {}, refuse(too_late())} : decide(pending_[key]);
        finish(key, std::move(answer), answers);
    }
    return answers;
}

ReformVotes::Answers ReformVotes::tick(int64_t now) {
    std::vector<Key> late;
    for (const auto &[key, pending] : pending_)
        if (now >= pending.deadline) late.push_back(key);
    Answers answers;
    for (Key key : late) finish(key, {{}, {}, give_up(pending_[key])}, answers);
    return answers;
}

int64_t ReformVotes::next_deadline() const {
    int64_t next = INT64_MAX;
    for (const auto &[key, pending] : pending_) next = std::min(next, pending.deadline);
    return next;
}

void ReformVotes::remember(const wire::Moved &moved) {
    for (const wire::Moved &known : finished_)
        if (known.group == moved.group && known.attempt == moved.attempt) return;
    if (finished_.size() >= max_finished) finished_.erase(finished_.begin());
    finished_.push_back(moved);
}

bool ReformVotes::decided() const {
    return std::ranges::any_of(finished_,
                               [](const wire::Moved &moved) { return moved.status == DTRAIN_OK; });
}

const wire::Gone *ReformVotes::first_moved() const {
    for (const auto &[member, gone] : state_.gone)
        if (gone.moved && state_.peers[size_t(member)].role == 0) return &gone;
    return nullptr;
}

Status ReformVotes::too_late() const {
    return fail(DTRAIN_ERR_FENCED,
                "reform: the job has gone on without this process, as generation %u: %s for it; "
                "start it anew to come back as a newcomer (DTRAIN_RANK=new)",
                own_.generation + 1, first_moved()->text.c_str());
}

bool ReformVotes::complete(const Pending &pending) const {
    return std::ranges::all_of(
        pending.members, [&](int32_t m) { return !state_.alive(m) || pending.asked.contains(m); });
}

int32_t ReformVotes::staying(const Pending &pending) const {
    return int32_t(
        std::ranges::count_if(pending.asked, [](const auto &one) { return !one.second.leaves; }));
}

int32_t ReformVotes::room(const Pending &pending) const {
    const int32_t most = pending.largest > 0 ? pending.largest : int32_t(wire::max_members);
    return std::max(0, most - staying(pending));
}

// Nobody waits for newcomers if all leave.
bool ReformVotes::large_enough(const Pending &pending) const {
    const int32_t stay = staying(pending);
    const auto come = std::ranges::count(newcomers_.all(), false, &Newcomer::server);
    return stay == 0 || stay + std::min(int64_t(room(pending)), int64_t(come)) >= pending.smallest;
}

ReformVotes::Answer ReformVotes::decide(const Pending &pending) const {
    if (pending.largest > 0 && staying(pending) > pending.largest)
        return {{},
                {},
                refuse(fail(DTRAIN_ERR_LIMIT,
                            "reform: %d workers stay, but the job may have %d; some must "
                            "leave, or max_size must be larger",
                            staying(pending), pending.largest))};
    Answer answer;
    wire::Moved &moved = answer.moved;
    std::vector<Newcomer> servers;
    moved.generation = own_.generation + 1;
    for (int32_t m : pending.members) {
        auto vote = pending.asked.find(m);
        if (vote == pending.asked.end()) continue; // gone; state_.gone says why
        if (vote->second.leaves) {
            moved.went.push_back(state_.name(m) + " left at the reform");
            continue;
        }
        if (moved.workers.empty()) moved.place = vote->second.place;
        moved.workers.push_back(m);
    }
    for (const auto &[member, gone] : state_.gone) moved.went.push_back(gone.text);
    if (moved.workers.empty()) return answer; // all leave
    for (int32_t m = 0; m < state_.size(); m++)
        if (state_.peers[size_t(m)].role != 0 && state_.alive(m)) moved.servers.push_back(m);
    int32_t free = room(pending);
    for (const Newcomer &one : newcomers_.all()) {
        if (one.server)
            servers.push_back(one);
        else if (free-- > 0)
            answer.taken.push_back(one);
    }
    moved.workers.insert(moved.workers.end(), answer.taken.size(), wire::Moved::newcomer);
    moved.servers.insert(moved.servers.end(), servers.size(), wire::Moved::newcomer);
    answer.taken.insert(answer.taken.end(), servers.begin(), servers.end());
    for (const Newcomer &one : answer.taken) moved.came.push_back(one.label);
    return answer;
}

wire::Moved ReformVotes::give_up(const Pending &pending) const {
    std::vector<int32_t> missing;
    for (int32_t m : pending.members)
        if (state_.alive(m) && !pending.asked.contains(m)) missing.push_back(m);
    std::ranges::sort(missing);
    if (!missing.empty())
        return refuse(fail(DTRAIN_ERR_TIMEOUT,
                           "reform: still waiting for %s; every worker that is left must call it",
                           member_list(missing, own_.workers).c_str()));
    return refuse(fail(DTRAIN_ERR_TIMEOUT,
                       "reform: %d workers stay and %u processes wait to be taken in, but the job "
                       "needs %d workers; start more, or lower min_size",
                       staying(pending), newcomers_.count(), pending.smallest));
}

wire::Moved ReformVotes::refuse(Status status) const {
    wire::Moved moved;
    moved.status = status;
    moved.text = error_text();
    return moved;
}

void ReformVotes::finish(Key key, Answer answer, Answers &answers) {
    answer.moved.group = key.first;
    answer.moved.attempt = key.second;
    for (const auto &[member, vote] : pending_[key].asked) answer.members.push_back(member);
    pending_.erase(key);
    remember(answer.moved);
    answers.push_back(std::move(answer));
}

} // namespace dtrain::cluster
