// The coordinator's part in making groups: one decision for all members that ask for the same one.
// SPDX-License-Identifier: Apache-2.0
//
// Members ask for the same group if the kind, the group of which it is made, the user's tag and the
// list are equal. When all that the kind needs have asked, and hold the same tag id, there is a new
// group; if they hold different ones, they are told to ask again. Replies are kept, and members
// that have received one pass it to a new coordinator, so that all members get the same reply. A
// reply names the requests that it answers by member and serial number.
//
// create_group() and shrink() can wait for each other: a member that the former lacks waits in the
// latter for one that has asked for the former. Another thread may do what is missing, so both have
// some seconds; then the former fails, since after it all can shrink.
#pragma once
#include "base/clock.h"
#include "cluster/control/membership.h"

#include <compare>
#include <functional>
#include <map>
#include <vector>

namespace dtrain::cluster {

class GroupVotes {
  public:
    struct Answer {
        std::vector<int32_t> to;
        wire::GroupReply reply;
    };
    using Answers = std::vector<Answer>;
    using NewGroup = std::function<uint64_t()>;

    // state must outlive it. new_group() returns a uid never used before. workers: for texts.
    GroupVotes(const Membership &state, NewGroup new_group, int32_t workers)
        : state_(state), new_group_(std::move(new_group)), workers_(workers) {}

    // `member` must be alive and in request.members.
    Answers request(int32_t member, const wire::GroupRequest &request, int64_t now);
    // Whether another member asks for the same now.
    bool is_asked(const wire::GroupRequest &request) const;
    Answers member_gone(); // a member is not alive any more
    Answers tick(int64_t now);
    int64_t next_deadline() const;
    void remember(const wire::GroupReply &reply); // a reply of an earlier coordinator

  private:
    struct Key {
        wire::GroupKind kind;
        uint64_t group;
        int32_t user_tag;
        std::vector<int32_t> members;
        auto operator<=>(const Key &) const = default;
    };
    struct Request {
        uint32_t serial;
        wire::TagSet used;
        int32_t held;
        uint32_t round;
    };
    struct Pending {
        std::map<int32_t, Request> asked; // by member
        int64_t deadline = INT64_MAX;
        int64_t gives_way = INT64_MAX; // to a shrink that waits for its members: when
        std::string differs;           // not empty: the text about members that gave another list
    };
    using All = std::map<Key, Pending>;
    static constexpr size_t max_finished = 256;
    static constexpr int64_t grace = 5 * second; // or a quarter of the time that is left

    bool is_needed(const Key &key, int32_t member) const;
    std::vector<int32_t> missing(const Key &key, const Pending &pending) const;
    void look(All::iterator at, Answers &answers);
    wire::GroupReply decide(wire::GroupKind kind, const Pending &pending);
    wire::GroupReply give_up(const Key &key, const Pending &pending);
    std::string find_difference(const Key &key, const Pending &pending);
    int32_t shrinking(const Key &key, const Pending &pending) const;
    void watch_for_shrinks(int64_t now);
    void finish(All::iterator at, wire::GroupReply reply, Answers &answers); // erases it

    const Membership &state_;
    NewGroup new_group_;
    int32_t workers_;
    All pending_;
    std::vector<wire::GroupReply> finished_; // oldest first
};

} // namespace dtrain::cluster
