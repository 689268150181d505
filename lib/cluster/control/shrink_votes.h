// The coordinator's part of shrink: one decision for all members that ask.
// SPDX-License-Identifier: Apache-2.0
//
// A shrink is identified by (group, attempt); every member counts its attempts. Replies are kept,
// and members that have received one pass it to a new coordinator, so that all members get the same
// reply.
#pragma once
#include "wire/control.h"

#include <functional>
#include <map>
#include <vector>

namespace dtrain::cluster {

class ShrinkVotes {
  public:
    struct Answer {
        int32_t member;
        wire::ShrinkReply reply;
    };
    using Answers = std::vector<Answer>;
    using Alive = std::function<bool(int32_t)>;
    using NewGroup = std::function<uint64_t()>;

    // alive(member) tells whether it lives; new_group() returns a uid never used before. workers:
    // for texts.
    ShrinkVotes(Alive alive, NewGroup new_group, int32_t workers)
        : alive_(std::move(alive)), new_group_(std::move(new_group)), workers_(workers) {}

    // `member` must be alive and in request.members.
    Answers request(int32_t member, const wire::ShrinkRequest &request, int64_t now);
    Answers member_gone(); // a member is not alive any more
    Answers tick(int64_t now);
    int64_t next_deadline() const;
    void remember(const wire::ShrinkReply &reply); // a reply of an earlier coordinator

  private:
    using Key = std::pair<uint64_t, uint32_t>; // group, attempt
    struct Pending {
        std::vector<int32_t> members;
        std::map<int32_t, wire::TagSet> asked;
        int64_t deadline = INT64_MAX;
    };
    static constexpr size_t max_finished = 256;

    bool complete(const Pending &pending) const;
    wire::ShrinkReply decide(const Pending &pending);
    wire::ShrinkReply give_up(const Pending &pending) const;
    void finish(Key key, wire::ShrinkReply reply, Answers &answers); // erases pending_[key]

    Alive alive_;
    NewGroup new_group_;
    int32_t workers_;
    std::map<Key, Pending> pending_;
    std::vector<wire::ShrinkReply> finished_; // oldest first
};

} // namespace dtrain::cluster
