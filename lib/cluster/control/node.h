// One process's part of the control protocol: its member, and the coordinator if it runs in this
// process.
// SPDX-License-Identifier: Apache-2.0
//
// step(event, now) -> actions; it has no clock, socket or thread.
#pragma once
#include "cluster/control/coordinator.h"
#include "cluster/control/member_protocol.h"

namespace dtrain::cluster {

class Node {
  public:
    explicit Node(Settings settings);

    Actions start(int64_t now);
    Actions step(Event event, int64_t now);
    int64_t next_deadline() const;

    Status post(wire::Message message, int64_t now, Actions &actions);
    Status ask(wire::GroupRequest request, uint32_t &serial, int64_t now, Actions &actions);
    void withdraw(uint32_t serial) { member_.withdraw(serial); }
    Status reform(wire::ReformRequest request, uint32_t &attempt, int64_t now, Actions &actions);
    // moved: for the next generation of an elastic job.
    Actions leave(bool moved);

    const Membership &membership() const { return member_.membership(); }
    const Pace &pace() const { return member_.pace(); }
    bool coordinates() const { return coordinator_.has_value(); }

  private:
    // A member that looks for a new coordinator here before this member has lost the old one.
    struct Early {
        Accepted accepted;
        std::optional<wire::Rejoin> rejoin;
        int64_t deadline;
    };

    void handle(const Accepted &event, int64_t now, Actions &raw);
    void handle(const Dialled &event, int64_t now, Actions &raw);
    void handle(const DialFailed &event, int64_t now, Actions &raw);
    void handle(Received &event, int64_t now, Actions &raw);
    void handle(const Closed &event, int64_t now, Actions &raw);
    void handle(const TurnedAway &event, int64_t now, Actions &raw);
    void handle(const Tick &event, int64_t now, Actions &raw);
    void become_coordinator(Link own, int64_t now, Actions &raw);
    Actions route(Actions raw, int64_t now);
    bool counted() const; // others expect to hear of this process

    const Settings settings_;
    Absence absence_;
    MemberProtocol member_;
    std::optional<Coordinator> coordinator_;
    Link own_link_ = 0; // the member's number for local_link
    std::map<Link, Early> early_;
};

} // namespace dtrain::cluster
