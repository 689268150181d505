// Distributes events to the member and the coordinator of a process, and passes on their actions.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/node.h"

#include <algorithm>
#include <deque>

namespace dtrain::cluster {
namespace {

void turn_away(Link link, Status status, const char *why, Actions &actions) {
    actions.emplace_back(Send{link, wire::Over{status, why}});
    actions.emplace_back(Close{link});
}

} // namespace

Node::Node(Settings settings) : settings_(std::move(settings)), member_(settings_, absence_) {}

Actions Node::start(int64_t now) {
    Actions raw;
    member_.start(now, raw);
    return route(std::move(raw), now);
}

Actions Node::step(Event event, int64_t now) {
    Actions raw;
    absence_.ran(now, member_.pace(), counted());
    std::visit([&](auto &e) { handle(e, now, raw); }, event);
    return route(std::move(raw), now);
}

Status Node::post(wire::Message message, int64_t now, Actions &actions) {
    Actions raw;
    Status s = member_.post(std::move(message), raw);
    actions = route(std::move(raw), now);
    return s;
}

Status Node::ask(wire::GroupRequest request, uint32_t &serial, int64_t now, Actions &actions) {
    Actions raw;
    Status s = member_.ask(std::move(request), serial, raw);
    actions = route(std::move(raw), now);
    return s;
}

Status Node::reform(wire::ReformRequest request, uint32_t &attempt, int64_t now, Actions &actions) {
    Actions raw;
    Status s = member_.reform(std::move(request), attempt, raw);
    actions = route(std::move(raw), now);
    return s;
}

Actions Node::leave(bool moved) {
    Actions raw, out;
    if (coordinator_) coordinator_->leave(moved, raw);
    member_.leave(moved, raw);
    // Otherwise they would take this process for dead. Another one may know what was agreed.
    if (moved)
        for (const auto &[link, early] : early_)
            turn_away(link, DTRAIN_ERR_BUSY, "it is in the next generation", raw);
    for (Action &action : raw) {
        const auto *send = std::get_if<Send>(&action);
        const auto *close = std::get_if<Close>(&action);
        Link link = send != nullptr ? send->link : close != nullptr ? close->link : local_link;
        if (link != local_link && link != own_link_) out.push_back(std::move(action));
    }
    return out;
}

void Node::handle(const Accepted &event, int64_t now, Actions &raw) {
    if (coordinator_) return coordinator_->accepted(event, now, raw);
    if (early_.size() >= wire::max_unseated) {
        raw.emplace_back(Close{early_.begin()->first});
        early_.erase(early_.begin());
    }
    int64_t patience = member_.pace().timeout + 4 * member_.pace().interval;
    early_[event.link] = {event, std::nullopt, now + patience};
}

void Node::handle(const Dialled &event, int64_t now, Actions &raw) {
    if (!coordinator_ || !coordinator_->calls(event.link)) return member_.dialled(event, now, raw);
    coordinator_->called(event.link, false, now, raw);
    raw.emplace_back(Close{event.link});
}

void Node::handle(const DialFailed &event, int64_t now, Actions &raw) {
    if (coordinator_ && coordinator_->calls(event.link))
        coordinator_->called(event.link, event.refused, now, raw);
    else
        member_.dial_failed(event, now, raw);
}

void Node::handle(Received &event, int64_t now, Actions &raw) {
    if (member_.owns(event.link)) return member_.received(std::move(event.message), now, raw);
    if (coordinator_) return coordinator_->received(event.link, event.message, now, raw);
    auto early = early_.find(event.link);
    if (early == early_.end()) return;
    if (const auto *rejoin = std::get_if<wire::Rejoin>(&event.message)) {
        early->second.rejoin = *rejoin;
        return;
    }
    turn_away(event.link, DTRAIN_ERR_STATE, "this is not the coordinator", raw);
    early_.erase(early);
}

void Node::handle(const Closed &event, int64_t now, Actions &raw) {
    if (member_.owns(event.link)) return member_.closed(event, now, raw);
    if (coordinator_) coordinator_->closed(event, now, raw);
    early_.erase(event.link);
}

void Node::handle(const TurnedAway &event, int64_t now, Actions &) {
    if (coordinator_) coordinator_->turned_away(event, now);
}

void Node::handle(const Tick &, int64_t now, Actions &raw) {
    if (coordinator_) coordinator_->tick(now, raw);
    member_.tick(now, raw);
    std::erase_if(early_, [&](const auto &one) {
        if (now < one.second.deadline) return false;
        turn_away(one.first, DTRAIN_ERR_FENCED, "the job goes on without this process", raw);
        return true;
    });
}

void Node::become_coordinator(Link own, int64_t now, Actions &raw) {
    own_link_ = own;
    if (member_.joined()) {
        coordinator_.emplace(settings_, absence_, member_.membership(), member_.coordinator_dead(),
                             now);
    } else {
        coordinator_.emplace(settings_, absence_, now);
    }
    member_.dialled({own, ""}, now, raw);
    for (auto &[link, early] : early_) {
        coordinator_->accepted(early.accepted, now, raw);
        if (early.rejoin) coordinator_->received(link, *early.rejoin, now, raw);
    }
    early_.clear();
}

// Passes actions for the other half of this process to it, and returns the rest.
Actions Node::route(Actions raw, int64_t now) {
    Actions out;
    std::deque<Action> queue(std::make_move_iterator(raw.begin()),
                             std::make_move_iterator(raw.end()));
    for (; !queue.empty(); queue.pop_front()) {
        Action &action = queue.front();
        Actions more;
        if (auto *dial = std::get_if<Dial>(&action);
            dial != nullptr && dial->member == settings_.identity.member()) {
            become_coordinator(dial->link, now, more);
        } else if (auto *send = std::get_if<Send>(&action);
                   send != nullptr && send->link == local_link) {
            member_.received(*send->message, now, more);
        } else if (send != nullptr && send->link == own_link_) {
            coordinator_->received(local_link, *send->message, now, more);
        } else if (auto *close = std::get_if<Close>(&action);
                   close == nullptr || (close->link != local_link && close->link != own_link_)) {
            out.push_back(std::move(action));
        }
        for (Action &one : more) queue.push_back(std::move(one));
    }
    return out;
}

bool Node::counted() const { return coordinator_ ? coordinator_->counted() : member_.counted(); }

int64_t Node::next_deadline() const {
    int64_t next = member_.next_deadline();
    if (coordinator_) next = std::min(next, coordinator_->next_deadline());
    for (const auto &[link, early] : early_) next = std::min(next, early.deadline);
    return counted() ? std::min(next, absence_.next_run(member_.pace())) : next;
}

} // namespace dtrain::cluster
