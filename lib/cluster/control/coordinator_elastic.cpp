// The coordinator of an elastic job: processes that wait to be taken in, and the next generation.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/coordinator.h"

namespace dtrain::cluster {

void Coordinator::wait_to_come_in(Link link, const wire::Join &join, int64_t now,
                                  Actions &actions) {
    Status s = check_verify(join, settings_.self.verify);
    if (s == DTRAIN_OK) s = newcomers_.add(link, links_[link].remote, join, now);
    if (s != DTRAIN_OK)
        return refuse(link, s, std::string("the job refused: ") + error_text(), actions);
    lobby_.erase(link);
    actions.emplace_back(Send{link, wire::Waiting{}});
    tell_newcomers(actions);
    move(reforms_.look_again(), actions);
}

void Coordinator::newcomer_gone(Link link, Actions &actions) {
    if (newcomers_.remove(link)) tell_newcomers(actions);
}

void Coordinator::tell_newcomers(Actions &actions) {
    if (settings_.elastic && phase_ == Phase::running)
        to_all(wire::Newcomers{newcomers_.count()}, actions);
}

void Coordinator::tick_newcomers(int64_t now, Actions &actions) {
    const std::vector<Link> silent = newcomers_.take_silent(pace_, now);
    for (Link link : silent)
        refuse(link, DTRAIN_ERR_BUSY, "it was silent for longer than heartbeat.timeout", actions);
    if (!silent.empty()) tell_newcomers(actions);
}

bool Coordinator::reform(int32_t member, const wire::ReformRequest &request, int64_t now,
                         Actions &actions) {
    if (!in_group(member, request.members) || request.place.empty()) return false;
    if (door_awaits_ && !reforms_.is_answered(request)) {
        door_awaits_ = false;
        actions.emplace_back(OpenDoor{});
    }
    if (!reforms_.is_answered(request) && !reforms_.is_asked(request))
        tell_of_wait(member, request.group, request.members, "reforms the job", actions);
    move(reforms_.request(member, request, now), actions);
    return true;
}

// Newcomers and servers are told first: they have the longer way.
void Coordinator::move(const ReformVotes::Answers &answers, Actions &actions) {
    for (const ReformVotes::Answer &answer : answers) {
        wire::Moved moved = answer.moved;
        for (const Newcomer &one : answer.taken) {
            moved.number++;
            actions.emplace_back(Send{one.link, moved});
            actions.emplace_back(Close{one.link});
            newcomers_.remove(one.link);
            links_.erase(one.link);
        }
        if (!answer.taken.empty()) tell_newcomers(actions);
        for (int32_t server : moved.servers)
            if (server != wire::Moved::newcomer && moved.status == DTRAIN_OK)
                to(server, answer.moved, actions);
        for (int32_t member : answer.members) to(member, answer.moved, actions);
    }
}

} // namespace dtrain::cluster
